"""The style sheet of the page: readable on a screen, in print and in grey."""

STYLE = """
body{font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif;color:#1a1a1a;background:#fff;max-width:60rem;
margin:2rem auto;padding:0 1.25rem}
h1{font-size:1.7rem;line-height:1.25;margin:0 0 1rem}
h2{font-size:1.2rem;margin:2.2rem 0 .6rem;border-bottom:1px solid #bbb;padding-bottom:.2rem}
h3,h4{font-size:1rem;margin:1rem 0 .3rem}
p{margin:.4rem 0}
ul{margin:.3rem 0;padding-left:1.3rem}
.box{border:1px solid #888;border-left:6px solid #333;padding:.6rem 1rem;background:#f6f6f6}
.sides{display:grid;grid-template-columns:1fr 1fr;gap:1.5rem}
table{border-collapse:collapse;width:100%;font-size:.9rem;margin:.6rem 0}
th,td{border-bottom:1px solid #ddd;text-align:left;vertical-align:top;padding:.35rem .6rem .35rem 0;
overflow-wrap:anywhere}
th{border-bottom:2px solid #888}
td:nth-child(3){white-space:nowrap}
.bad{font-weight:600}
.bad::before{content:"\\26A0\\FE0E  "}
.good::before{content:"\\2713  "}
pre{background:#f3f3f3;padding:.7rem 1rem;overflow-x:auto;font-size:.85rem;white-space:pre-wrap}
figure{margin:1rem 0}
img{max-width:100%;height:auto;border:1px solid #ddd}
figcaption,small{color:#555;font-size:.85rem}
@media (max-width:40rem){.sides{grid-template-columns:1fr}td:nth-child(3){white-space:normal}}
@media print{body{margin:0;max-width:none}section{break-inside:avoid}}
"""
