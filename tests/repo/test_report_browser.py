"""Reports open in a real browser: every chart is drawn, nothing overflows, no network.

The browser runs headless with a fresh profile and every host name unresolvable. It is
asked through the page itself: a probe script, added to a copy of the report, measures
the page once the charts are drawn and writes what it found into the document.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed.checks import judge
from testbed.contract.record import Record
from testbed.report import Study, compare_study, write_comparison, write_report
from testbed.report.comparison_charts import comparison_charts
from testbed.report.results_page import write_results_page
from testbed.reproduce.reduce import results_of
from tests.fakes.example_study import GOOD, STUDY
from tests.fakes.fake_run import FakeRun
from tests.fakes.metrics import write_rough_metrics
from tests.fakes.outcomes import outcomes
from tests.fakes.run_folder import write_run_folder

BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no chromium on this machine (apt-get install chromium)"
)

PROBE = """
<script>
(() => {
  const faults = [];
  addEventListener("error", (event) => faults.push(String(event.message)));
  addEventListener("securitypolicyviolation", (event) => faults.push(event.blockedURI));
  const started = Date.now();
  const look = () => {
    const state = document.documentElement.dataset.charts;
    if (!state && Date.now() - started < 20000) return setTimeout(look, 50);
    const plots = [...document.querySelectorAll(".plot")];
    const seen = {
      state: state || "never drawn",
      faults,
      width: innerWidth,
      overflow: document.documentElement.scrollWidth - innerWidth,
      drawn: plots.filter((p) => p.querySelectorAll(".trace").length).length,
      plots: plots.length,
      clipped: plots.filter((p) => {
        const box = p.getBoundingClientRect();
        return box.right > innerWidth || box.width < 200;
      }).length,
      requests: performance.getEntriesByType("resource").map((entry) => entry.name),
      background: getComputedStyle(document.body).backgroundColor,
      ink: getComputedStyle(document.body).color,
      legend: getComputedStyle(document.querySelector(".legendtext")).fill,
    };
    const out = document.createElement("pre");
    out.id = "seen";
    out.textContent = JSON.stringify(seen);
    document.body.append(out);
  };
  look();
})();
</script>
"""


class Seen(Record):
    """What the probe measured; sizes in CSS pixels."""

    state: str
    faults: tuple[str, ...]
    width: int
    overflow: int
    drawn: int
    plots: int
    clipped: int
    requests: tuple[str, ...]
    background: str
    ink: str
    legend: str


@dataclass(frozen=True, slots=True)
class Pages:
    """The three kinds of page."""

    run: Path
    study: Path
    results: Path


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    root = tmp_path_factory.mktemp("runs")
    folders: list[Path] = []
    for name, wide in (("pool-wide-skewed", True), ("pool-narrow-even", False)):
        run = FakeRun(
            scenario=name,
            wide=wide,
            rate=40,
            warm_up_s=2,
            measure_s=6,
            drain_s=40,
            pool=40,
            load=1.1,
        )
        folder = write_run_folder(root / name, run)
        write_rough_metrics(folder)
        judge(folder)
        write_report(folder)
        folders.append(folder)
    study = compare_study(Study("Wide against narrow", (folders[0],), (folders[1],)))
    results = results_of(STUDY, outcomes(GOOD))
    return Pages(
        folders[0] / "report.html",
        write_comparison(study, root / "study.html"),
        write_results_page(results, comparison_charts(study), root / "results.html"),
    )


def look(page: Path, width: int, scratch: Path, dark: bool = False) -> Seen:
    """Open a page in a frame of exactly ``width`` pixels and return what the probe saw.

    A headless window is never narrower than 500 pixels, so the page under test runs
    inside a frame, which has the width of a phone where the window has not.
    """
    probed = scratch / "probed.html"
    # The probe comes first in the body, so that it hears of every later error.
    probed.write_text(page.read_text().replace("<body>", f"<body>{PROBE}", 1))
    frame = scratch / "frame.html"
    frame.write_text(
        f'<body style="margin:0"><iframe src="probed.html" width="{width}" height="900" '
        'style="border:0"></iframe><script>setInterval(() => {'
        'const seen = document.querySelector("iframe").contentDocument?.getElementById("seen");'
        "if (seen) document.body.dataset.seen = seen.textContent;}, 50)</script></body>"
    )
    scheme = ("--blink-settings=preferredColorScheme=0",) if dark else ()
    done = subprocess.run(
        [
            str(BROWSER),
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--allow-file-access-from-files",
            f"--user-data-dir={scratch / 'profile'}",
            f"--window-size={max(width, 500)},1000",
            "--virtual-time-budget=30000",
            *scheme,
            "--dump-dom",
            frame.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    match = re.search(r'data-seen="(.*?)"[ >]', done.stdout)
    assert match is not None, f"the probe did not answer: {done.stderr[-2000:]}"
    return Seen.model_validate(json.loads(match[1].replace("&quot;", '"').replace("&amp;", "&")))


@pytest.mark.parametrize("width", [400, 1600])
@pytest.mark.parametrize("kind", ["run", "study", "results"])
def test_every_chart_is_drawn_and_nothing_overflows(
    pages: Pages, kind: str, width: int, tmp_path: Path
) -> None:
    seen = look({"run": pages.run, "study": pages.study, "results": pages.results}[kind], width,
                tmp_path)  # fmt: skip
    assert seen.width == width
    assert (seen.state, seen.faults, seen.requests) == ("drawn", (), ())
    assert seen.drawn == seen.plots > 2
    assert seen.overflow <= 0
    assert seen.clipped == 0


def test_the_dark_scheme_reaches_page_and_charts(pages: Pages, tmp_path: Path) -> None:
    (tmp_path / "light").mkdir()
    (tmp_path / "dark").mkdir()
    light = look(pages.run, 1000, tmp_path / "light")
    dark = look(pages.run, 1000, tmp_path / "dark", dark=True)
    assert _brightness(light.background) > 200 > 60 > _brightness(dark.background)
    assert _brightness(light.ink) < 60 < 200 < _brightness(dark.ink)
    assert _brightness(light.legend) < 60 < 200 < _brightness(dark.legend)


def test_the_probe_notices_a_broken_page(pages: Pages, tmp_path: Path) -> None:
    broken = tmp_path / "broken.html"
    text = pages.run.read_text()
    broken.write_text(text.replace("</main>", '<img src="https://example.org/x.png"></main>', 1))
    assert look(broken, 800, tmp_path).faults == ("https://example.org/x.png",)


def _brightness(colour: str) -> float:
    numbers = [float(n) for n in re.findall(r"[\d.]+", colour)][:3]
    return sum(numbers) / 3
