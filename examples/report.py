#!/usr/bin/env python3
"""A friendly task: sales from sales.csv, exchange rates from the API, a chart in chart.svg."""
import csv
import json
import os
import urllib.request

sales = {}
with open("sales.csv") as rows:
    for row in csv.DictReader(rows):
        sales.setdefault(row["month"], {}).setdefault(row["currency"], 0.0)
        sales[row["month"]][row["currency"]] += float(row["amount"])

request = urllib.request.Request("http://host.cerco.internal:8877/v1/rates",
                                 headers={"Authorization": "Bearer " + os.environ["REPORTS_API_KEY"]})
with urllib.request.urlopen(request, timeout=30) as answer:
    rates = json.load(answer)

totals = {month: sum(amount * rates[currency] for currency, amount in by.items()) for month, by in sales.items()}
top = max(totals.values())
bars = []
for i, (month, total) in enumerate(totals.items()):
    height = 160 * total / top
    bars.append(f'<rect x="{20 + 60 * i}" y="{180 - height:.0f}" width="40" height="{height:.0f}" fill="#356"/>'
                f'<text x="{40 + 60 * i}" y="196" text-anchor="middle">{month}</text>'
                f'<text x="{40 + 60 * i}" y="{174 - height:.0f}" text-anchor="middle">{total:.0f}</text>')
width = 40 + 60 * len(totals)
with open("chart.svg", "w") as chart:
    chart.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="204" font-family="sans-serif" font-size="11">'
                + "".join(bars) + "</svg>\n")
print("wrote chart.svg:", ", ".join(f"{month} {total:.0f} EUR" for month, total in totals.items()))
print("this process held only", os.environ["REPORTS_API_KEY"][:9] + "…")
