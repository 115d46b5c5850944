"""The style sheet of the page: readable on a screen, in print and in grey."""

STYLE = """
body{font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif;color:#1a1a1a;background:#fff;max-width:60rem;
margin:2rem auto;padding:0 1.25rem}
h1{font-size:1.7rem;line-height:1.25;margin:0 0 1rem;overflow-wrap:anywhere}
h2{font-size:1.2rem;margin:2.2rem 0 .6rem;border-bottom:1px solid #bbb;padding-bottom:.2rem}
h3,h4{font-size:1rem;margin:1rem 0 .3rem}
p{margin:.4rem 0}
ul{margin:.3rem 0;padding-left:1.3rem}
li{margin:.15rem 0}
dt{font-weight:600;margin-top:.5rem}
dd{margin:0}
.box{border:1px solid #888;border-left:6px solid #333;padding:.3rem 1rem .8rem;background:#f6f6f6;
display:grid;grid-template-columns:minmax(10rem,14rem) 1fr;gap:0 1.2rem}
.box dt,.box dd{margin-top:.5rem}
.warning{border:2px solid #333;padding:.5rem 1rem;font-weight:600}
.owner{border:1px solid #555;border-radius:.2rem;padding:0 .3rem;font-size:.75rem;white-space:nowrap}
.sides{display:grid;grid-template-columns:1fr 1fr;gap:1.5rem}
table{border-collapse:collapse;width:100%;font-size:.9rem;margin:.6rem 0}
th,td{border-bottom:1px solid #ddd;text-align:left;vertical-align:top;padding:.35rem .9rem .35rem 0;
overflow-wrap:break-word}
th{border-bottom:2px solid #888}
.bad::before{content:"\\26A0\\FE0E  "}
.good::before{content:"\\2713  "}
.marks{list-style:none;padding-left:0}
pre{background:#f3f3f3;padding:.7rem 1rem;overflow-x:auto;font-size:.85rem;white-space:pre-wrap;
overflow-wrap:anywhere}
summary{cursor:pointer;color:#333}
figure{margin:1rem 0}
img{max-width:100%;height:auto;border:1px solid #ddd}
figcaption,small{color:#555;font-size:.85rem}
@media (max-width:40rem){.sides,.box{grid-template-columns:1fr}}
@media print{body{margin:0;max-width:none;font-size:11pt}section{break-inside:auto}tr,figure,.box{break-inside:avoid}
h2{break-after:avoid}details::details-content{content-visibility:visible}}
"""
