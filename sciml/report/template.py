"""The page as one Jinja2 template; kept in a module so that the wheel needs no data files."""

from __future__ import annotations

TEMPLATE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="sciml {{ version }}">
<title>{{ page.title }}</title>
<style>
:root { color-scheme: light; --ink: #1f2328; --soft: #57606a; --line: #d8dee4; --paper: #ffffff;
  --wash: #f6f8fa; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1060px; margin: 0 auto; padding: 2.6rem 1.6rem 4rem; }
header { border-bottom: 2px solid var(--ink); padding-bottom: 1.1rem; }
.kicker { color: var(--soft); font-size: .8rem; letter-spacing: .08em; text-transform: uppercase; margin: 0; }
h1 { font-size: 1.9rem; font-weight: 600; line-height: 1.2; letter-spacing: -.01em; margin: .15rem 0 0; }
nav { margin-top: .8rem; font-size: .9rem; }
nav a { color: var(--soft); margin-right: 1.3rem; text-decoration: none; }
nav a:hover { color: var(--ink); text-decoration: underline; }
h2 { font-size: 1.2rem; font-weight: 600; margin: 2.6rem 0 .7rem; }
h3 { font-size: 1rem; font-weight: 600; margin: 1.8rem 0 .2rem; }
p { margin: .3rem 0 .7rem; max-width: 46rem; }
.soft { color: var(--soft); font-size: .88rem; }
dl.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(14rem, 1fr)); gap: .9rem 1.6rem;
  margin: 1.3rem 0 0; }
dl.facts dt { color: var(--soft); font-size: .8rem; }
dl.facts dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .93rem; font-variant-numeric: tabular-nums; }
th, td { padding: .42rem 1.1rem .42rem 0; text-align: left; vertical-align: baseline;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; font-size: .82rem; color: var(--soft); border-bottom: 1px solid var(--ink);
  white-space: nowrap; }
td.number, th.number { text-align: right; white-space: nowrap; }
td:last-child, th:last-child { padding-right: 0; }
td.name { font-weight: 600; white-space: nowrap; }
figure { margin: .5rem 0 1.2rem; }
figure img { display: block; width: 100%; height: auto; }
details { border-top: 1px solid var(--line); padding: .7rem 0; }
details:last-of-type { border-bottom: 1px solid var(--line); }
summary { cursor: pointer; font-weight: 600; }
pre { background: var(--wash); padding: .9rem 1.1rem; overflow-x: auto; margin: .7rem 0 .2rem;
  font: .83rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
@media print { main { max-width: none; padding: 0; } nav { display: none; } figure { break-inside: avoid; } }
</style>
</head>
<body>
<main>
<header>
<p class="kicker">sciml report</p>
<h1>{{ page.title }}</h1>
<nav>{% for id, name in sections %}<a href="#{{ id }}">{{ name }}</a>{% endfor %}</nav>
</header>
{% if page.facts %}
<dl class="facts">{% for name, text in page.facts.items() %}
<div><dt>{{ name }}</dt><dd>{{ text }}</dd></div>{% endfor %}
</dl>
{% endif %}
{% if page.rows %}
<h2 id="results">Results</h2>
<div class="scroll"><table>
<thead><tr>{% for c in columns %}
<th class="{{ 'number' if c.numeric else '' }}">{{ c.heading }}</th>{% endfor %}
</tr></thead>
<tbody>{% for row in page.rows %}
<tr>{% for c in columns %}
<td class="{{ 'number' if c.numeric else ('name' if loop.first else 'soft') }}">{{ c.text(row) }}</td>{% endfor %}
</tr>{% endfor %}
</tbody></table></div>
<p class="soft">{% for c in columns if c.numeric %}
<b>{{ c.heading }}</b>: {{ c.meaning }}{{ "." if loop.last else "; " }}{% endfor %}</p>
{% endif %}
{% if fields %}
<h2 id="fields">Fields on held-out samples</h2>
{% for f in fields %}
<h3>{{ f.heading }}</h3>
<p class="soft">{{ f.caption }}</p>
<figure><img src="{{ f.image }}" alt="{{ f.heading }}: truth, prediction, error, cuts, spectrum"></figure>
{% endfor %}
{% if fields_left_out %}<p class="soft">{{ fields_left_out }} more comparisons are not shown.</p>{% endif %}
{% endif %}
{% if quantities %}
<h2 id="quantities">Quantities of interest</h2>
<p class="soft">Each dot is one held-out sample; on the line, prediction and truth agree.</p>
<figure><img src="{{ quantities }}" alt="Predicted over true quantities of interest"></figure>
{% if quantities_left_out %}<p class="soft">{{ quantities_left_out }} more are not shown.</p>{% endif %}
{% endif %}
{% if curves %}
<h2 id="training">Training</h2>
<figure><img src="{{ curves }}" alt="Loss over training steps, one panel per model"></figure>
{% if curves_left_out %}<p class="soft">{{ curves_left_out }} more histories are not shown.</p>{% endif %}
{% endif %}
{% if page.recipe_text or page.environment %}
<h2 id="reproduce">How to get this again</h2>
{% if page.recipe_text %}
<details open><summary>Recipe</summary><pre>{{ page.recipe_text }}</pre></details>
{% endif %}
{% if page.environment %}
<details><summary>Environment</summary><div class="scroll"><table><tbody>
{% for name, text in page.environment.items() %}
<tr><td class="name">{{ name }}</td><td>{{ text }}</td></tr>
{% endfor %}
</tbody></table></div></details>
{% endif %}
{% endif %}
</main>
</body>
</html>
"""
