"""Write the golden files anew: ``cd tests && python -m golden``. Read the difference before it is committed."""

from golden.made import FILES, HERE

for name, make in FILES.items():
    (HERE / name).write_text(make(), encoding="utf-8")
    print(name)
