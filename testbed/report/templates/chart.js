"use strict";
// Draws the charts of the page in the colours of the reader's scheme, again when it changes.
(() => {
  const charts = JSON.parse(document.getElementById("chart-data").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  const palette = () => {
    const style = getComputedStyle(document.documentElement);
    return (name) => style.getPropertyValue(`--${name}`).trim();
  };

  const axis = (spec, colour, extra) => ({
    title: { text: spec.title, standoff: 8 },
    type: spec.log ? "log" : "linear",
    rangemode: spec.zero ? "tozero" : "normal",
    tickformat: spec.percent ? ".0%" : spec.log ? "~g" : "",
    ...(spec.log ? { dtick: "D2", minor: { showgrid: false }, exponentformat: "none" } : {}),
    gridcolor: colour("line"), linecolor: colour("line"), zeroline: false, automargin: true,
    ...extra,
  });

  const trace = (spec, chart, colour) => {
    const tone = colour(spec.colour);
    const x = chart.x.log ? "%{x:.4g}" : "%{x:.2f}";
    const y = chart.y.percent ? "%{y:.1%}" : "%{y:.4g}";
    const drawn = {
      type: "scatter", name: spec.name, x: spec.x, y: spec.y, mode: spec.mode,
      line: { color: tone, width: 2, dash: spec.dash, shape: spec.step ? "hv" : "linear" },
      marker: {
        color: tone, symbol: spec.symbol, opacity: spec.x.length > 200 ? 0.55 : 1,
        size: spec.x.length > 200 ? 5 : 8,
      },
      hovertemplate: `${chart.x.title}: ${x}<br>${chart.y.title}: ${y}<extra>${spec.name}</extra>`,
    };
    if (spec.fill) Object.assign(drawn, { fill: "tozeroy", fillcolor: colour("band") });
    if (spec.high.length) {
      drawn.error_y = {
        type: "data", symmetric: false, color: tone, thickness: 1.2, width: 4,
        array: spec.high.map((v, i) => v - spec.y[i]),
        arrayminus: spec.low.map((v, i) => spec.y[i] - v),
      };
    }
    return drawn;
  };

  const layout = (chart, colour) => ({
    autosize: true,
    margin: { l: 8, r: 12, t: 8, b: 8 },
    font: { family: getComputedStyle(document.body).fontFamily, size: 12.5, color: colour("soft") },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    hoverlabel: { bgcolor: colour("card"), bordercolor: colour("line"), font: { color: colour("ink") } },
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { color: colour("ink") } },
    showlegend: true,
    xaxis: axis(chart.x, colour, {}),
    yaxis: axis(chart.y, colour, chart.y.percent && chart.id.includes("cdf") ? { range: [0, 1.01] } : {}),
    shapes: [
      ...chart.bands.map((band) => ({
        type: "rect", xref: "x", yref: "paper", x0: band.begin, x1: band.end, y0: 0, y1: 1,
        fillcolor: colour(band.fault ? "fault" : "band"), line: { width: 0 }, layer: "below",
      })),
      ...chart.rules.map((rule) => ({
        type: "line", xref: "paper", yref: "y", x0: 0, x1: 1, y0: rule.y, y1: rule.y,
        line: { color: colour("quiet"), width: 1.2, dash: "dot" },
      })),
    ],
    annotations: [
      ...chart.bands.map((band, row) => ({  // names of faults stand below each other
        xref: "x", yref: "paper", x: band.begin, y: 0.99 - 0.07 * (row % 7), text: band.label,
        showarrow: false, xanchor: "left", yanchor: "top", font: { color: colour("soft"), size: 11.5 },
      })),
      ...chart.rules.map((rule) => ({
        xref: "paper", yref: "y", x: 1, y: rule.y, text: rule.label, showarrow: false,
        xanchor: "right", yanchor: "bottom", font: { color: colour("soft"), size: 11.5 },
      })),
    ],
  });

  const settings = {
    responsive: true, displayModeBar: false, showTips: false,
  };

  const draw = () => Promise.all(charts.map((chart) => {
    const colour = palette();
    const traces = chart.traces.map((spec) => trace(spec, chart, colour));
    return Plotly.react(chart.id, traces, layout(chart, colour), settings);
  }));

  const done = (state) => { document.documentElement.dataset.charts = state; };
  draw().then(() => done("drawn"), (error) => { done("broken"); throw error; });
  dark.addEventListener("change", draw);
})();
