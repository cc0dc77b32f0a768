"""Pages: one self-contained HTML file each, written whole or not at all.

Style, script, data and Plotly are inlined once; the page's content security policy
forbids every request, so what opens here opens without a network.
"""

from __future__ import annotations

import os
import tempfile
from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from pydantic import TypeAdapter

from testbed.report.chart import Chart

_CHARTS = TypeAdapter(tuple[Chart, ...])


@cache
def environment() -> Environment:
    """Return the template environment: escaping on, unknown names are errors."""
    return Environment(
        loader=PackageLoader("testbed.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, charts: tuple[Chart, ...], content: dict[str, object]) -> str:
    """Render a page; ``content`` holds the template's names."""
    return (
        environment()
        .get_template(template)
        .render(
            content,
            charts=charts,
            style=Markup(_asset("style.css")),
            script=Markup(_asset("chart.js")),
            plotly=Markup(_plotly()),
            data=embed(charts),
        )
    )


def embed(charts: tuple[Chart, ...]) -> Markup:
    """Return the charts as JSON that no ``</script>`` can end."""
    text = _CHARTS.dump_json(charts, exclude={"__all__": {"table"}}).decode()
    return Markup(text.replace("<", "\\u003c"))


def write_page(path: Path, text: str) -> Path:
    """Write a page beside its final name, then rename: readers never see half a file."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
    return path


def _asset(name: str) -> str:
    return files("testbed.report").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def _plotly() -> str:
    source = files("plotly").joinpath("package_data", "plotly.min.js")
    return source.read_text(encoding="utf-8")
