// Opens every page in Chromium: errors, injections, keyboard, contrast, phone width, first paint, screenshots.
// Prints one JSON object. Usage: node drive.mjs ADDRESS SESSION SOURCE FOLDER CHROMIUM

import { createRequire } from "node:module";
import { mkdirSync } from "node:fs";

const [address, session, source, folder, executablePath] = process.argv.slice(2);
const { chromium } = createRequire(`${process.env.SIDECAR_INSIGHT_DIR}/`)("playwright-core");
const origin = new URL(address).origin;
const PAGES = { overview: "/", chats: "/chats", chat: `/chats/${session}`, knowledge: "/knowledge", source: source && `/knowledge/${source}`,
  rules: "/rules", patches: "/patches", tools: "/tools", agents: "/agents", doctor: "/doctor" };

/** Texts whose contrast with their ground is under 4.5. */
function lowContrast() {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = (rgb) => { const [r, g, b] = rgb.slice(0, 3).map((each) => { const part = each / 255; return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = (element) => { for (let each = element; each; each = each.parentElement) { const found = rgba(getComputedStyle(each).backgroundColor); if (found[3] > 250) return found; } return [255, 255, 255, 255]; };
  const bad = new Set();
  for (const element of document.body.querySelectorAll("*")) {
    if (![...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()) || !element.checkVisibility() || element.closest("noscript")) continue;
    const [a, b] = [light(rgba(getComputedStyle(element).color)), light(ground(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.add(`${element.tagName}.${element.className} ${ratio.toFixed(2)}`);
  }
  return [...bad];
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
const page = await context.newPage();
const report = { errors: [], paints: {}, contrast: {}, wide: [], broken: [], text: {}, keyboard: [], foreign: [] };
page.on("console", (message) => { if (["error", "warning"].includes(message.type())) report.errors.push(message.text()); });
page.on("pageerror", (error) => report.errors.push(String(error)));
page.on("request", (request) => { if (!request.url().startsWith(origin)) report.foreign.push(request.url()); });
await page.goto(address);
await page.waitForURL(`${origin}/`);
mkdirSync(folder, { recursive: true });

const settled = () => page.waitForFunction(() => document.querySelector("main h1"));
/** The best of some loads: what else the machine does is not the page's. */
async function quickestPaint(url) {
  const paints = [];
  for (let load = 0; load < 5; load += 1) {
    await page.goto(url);
    await settled();
    paints.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Infinity));
  }
  return Math.min(...paints);
}

for (const [name, path] of Object.entries(PAGES)) {
  if (!path || (name === "chat" && !session)) continue;
  for (const scheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width: 1280, height: 860 });
    await page.goto(origin + path);
    await settled();
    if (scheme === "light" && ["overview", "chats"].includes(name)) report.paints[name] = await quickestPaint(origin + path);
    for (const summary of (await page.locator("main summary").all()).slice(0, 6)) await summary.click();
    await page.waitForTimeout(150);
    const bad = await page.evaluate(lowContrast);
    if (bad.length) report.contrast[`${name} ${scheme}`] = bad;
    if (await page.evaluate(() => "broken" in window)) report.broken.push(name);
    await page.screenshot({ path: `${folder}/${name}-${scheme}.png`, fullPage: true });
  }
  report.text[name] = await page.evaluate(() => document.querySelector("main").textContent);
  await page.setViewportSize({ width: 390, height: 800 });
  await page.waitForTimeout(80);
  if (await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)) report.wide.push(name);
  await page.screenshot({ path: `${folder}/${name}-phone.png` });
}

// Keyboard only: from the address to each page of the navigation, and the marked element has an outline.
await page.setViewportSize({ width: 1280, height: 860 });
await page.goto(origin);
await settled();
for (let at = 0; at < 10; at += 1) {
  await page.keyboard.press("Tab");
  report.keyboard.push(await page.evaluate(() => { const it = document.activeElement; return [it.textContent.trim().slice(0, 30), it.getAttribute("href") ?? "", getComputedStyle(it).outlineStyle]; }));
}
await page.keyboard.press("Enter");
await page.waitForURL(/doctor/);
await browser.close();
console.log(JSON.stringify(report));
