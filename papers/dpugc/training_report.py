def write_report(out, *, readme):
    pass
