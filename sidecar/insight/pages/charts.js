// Plots: bars a day and stacked areas a turn, with uPlot.

import { make } from "./dom.js";
import { short } from "./format.js";

const COLOURS = ["#3f72d9", "#d9822b", "#3a9a68", "#a45bd0", "#c9485b", "#2a9fb5", "#8f8a2e", "#7b6cf0", "#b96f95", "#6f8791", "#b4683a"];
export const colour = (at) => COLOURS[at % COLOURS.length];

const style = (name) => {
  const probe = make("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
};

function draw(label, unit, series, data, xValues) {
  const target = make("div", { class: "chart", role: "img", "aria-label": label });
  const axis = { stroke: style("--quiet"), grid: { stroke: style("--line"), width: 1 }, ticks: { show: false } };
  const plot = () => {
    target.replaceChildren();
    const showLast = (chart) => { if (chart.cursor.idx === null || chart.cursor.idx === undefined) chart.setLegend({ idx: data[0].length - 1 }, false); };
    new uPlot({
      hooks: { ready: [showLast], setCursor: [showLast] },
      width: Math.max(240, target.clientWidth),
      height: 220,
      cursor: { drag: { x: false, y: false } },
      scales: { x: { time: false, range: [-0.5, Math.max(0.5, data[0].length - 0.5)] }, y: { range: (_, low, high) => [0, high > 0 ? high * 1.08 : 1] } },
      axes: [
        { ...axis, grid: { show: false }, incrs: [1, 2, 5, 7, 10, 20, 50], values: (_, at) => at.map((each) => xValues[each] ?? "") },
        { ...axis, size: 56, values: (_, at) => at.map(short) },
      ],
      series: [{ label: unit, value: (_, at) => xValues[at] ?? "–" }, ...series],
    }, data, target);
  };
  new ResizeObserver((entries) => { if (target.dataset.width !== String(entries[0].contentRect.width | 0)) { target.dataset.width = String(entries[0].contentRect.width | 0); plot(); } }).observe(target);
  return target;
}

/** One bar a day; a day without a figure has none. */
export function dayBars(label, days, values, at) {
  const bars = { label, fill: colour(at), stroke: colour(at), width: 0, paths: uPlot.paths.bars({ size: [0.7, 40] }), points: { show: false }, value: (_, value) => short(value) };
  return draw(`${label} a day`, "Day", [bars], [days.map((_, index) => index), values], days.map((day) => day.slice(5)));
}

/** `layers` is [name, values][]: each is drawn on those before it. */
export function stackedAreas(label, names, layers) {
  const sums = names.map(() => 0);
  const stacked = layers.map(([name, values], at) => {
    values.forEach((value, index) => { sums[index] += value ?? 0; });
    return { series: { label: name, stroke: colour(at), fill: colour(at), width: 1, points: { show: names.length < 2 }, value: (_, __, ___, index) => short(index === null ? null : values[index]) }, data: [...sums] };
  }).reverse(); // the highest first: each lower area covers its part
  return draw(label, "Turn", stacked.map((each) => each.series), [names.map((_, index) => index), ...stacked.map((each) => each.data)], names);
}
