// Page of `dptext playground`. It talks only to its own server, stores nothing, and shows all text as plain text.
"use strict";

const STEPS = 200;
const LONG = 60; // words: longer texts show percentages only in the details of a word
const TYPING = 150; // milliseconds after the last key before a text is sent
const SPOKEN = 900; // milliseconds before a guarantee is announced
const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);

const state = { methods: {}, method: null, epsilon: {}, chosen: 0, shown: null, text: null, limit: 0 };
let pending = null; // the request in progress
let isStale = false; // a setting changed since the request began
let timer = 0;
let speaking = 0;

// -- helpers --------------------------------------------------------------------------------------------------------

function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== null) node.setAttribute(key, value);
  }
  node.append(...children); // strings become text nodes
  return node;
}

function percent(share) {
  if (share > 0 && share < 0.001) return "<0.1%";
  if (share < 1 && share > 0.999) return ">99.9%";
  return `${(100 * share).toFixed(1).replace(/\.0$/, "")}%`;
}

function rounded(epsilon) {
  return Number(epsilon.toPrecision(3));
}

function method() {
  return state.methods[state.method];
}

function fromSlider(step) {
  const [minimum, maximum] = method().epsilons;
  if (step <= 0) return minimum;
  return step >= STEPS ? maximum : rounded(minimum * (maximum / minimum) ** (step / STEPS));
}

function toSlider(epsilon) {
  const [minimum, maximum] = method().epsilons;
  return Math.round((STEPS * Math.log(epsilon / minimum)) / Math.log(maximum / minimum));
}

// -- requests ------------------------------------------------------------------------------------------------------

// One request at a time: while a slider is dragged, the next request waits for the last answer.
function ask({ dropsPending = false } = {}) {
  if (pending && !dropsPending) {
    isStale = true;
    return;
  }
  pending?.abort();
  send();
}

async function send() {
  const controller = new AbortController();
  pending = controller;
  isStale = false;
  const request = { method: state.method, text: byId("text").value, epsilon: state.epsilon[state.method] };
  const slow = setTimeout(() => {
    byId("busy").textContent = "Computing…";
    byId("results").setAttribute("aria-busy", "true");
  }, 250);
  try {
    if (!request.text.trim()) throw new Error("The text is empty. Type some words, or choose a sample.");
    const answer = await fetch("show", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(request),
      signal: controller.signal,
      cache: "no-store",
    });
    const preview = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Error(preview.error ?? `The server answered ${answer.status}. Try again.`);
    state.shown = preview;
    state.text = request.text;
    say(null);
    show(preview);
  } catch (error) {
    if (controller.signal.aborted) return;
    if (request.text !== state.text) byId("results").hidden = true; // the results are for another text
    say(error instanceof TypeError ? "The server does not respond. If it was stopped, start it again: dptext playground" : error.message);
  } finally {
    clearTimeout(slow);
    if (pending === controller) {
      pending = null;
      byId("busy").textContent = "";
      byId("results").removeAttribute("aria-busy");
      if (isStale) send();
    }
  }
}

function say(problem) {
  if (problem === null && byId("epsilon").hasAttribute("aria-invalid")) return; // the answer is for an older epsilon
  byId("problem").hidden = problem === null;
  byId("problem").textContent = problem ?? "";
}

// -- controls -------------------------------------------------------------------------------------------------------

function setMethod(name) {
  state.method = name;
  const [minimum, maximum] = method().epsilons;
  byId("epsilon").min = minimum;
  byId("epsilon").max = maximum;
  state.chosen = 0;
  setEpsilon(state.epsilon[name]);
}

function setEpsilon(epsilon, { from = null } = {}) {
  state.epsilon[state.method] = epsilon;
  if (from !== byId("slider")) byId("slider").value = toSlider(epsilon);
  if (from !== byId("epsilon")) byId("epsilon").value = epsilon;
  byId("slider").setAttribute("aria-valuetext", `epsilon ${epsilon}`);
}

function soon() {
  clearTimeout(timer);
  timer = setTimeout(() => ask({ dropsPending: true }), TYPING);
}

function setText(text) {
  byId("text").value = text;
  count();
  state.chosen = 0;
  ask({ dropsPending: true });
}

function count() {
  byId("counted").textContent = `${[...byId("text").value].length} of at most ${state.limit} characters`;
}

function connect() {
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  byId("text").addEventListener("input", () => {
    state.chosen = 0;
    count();
    soon();
  });
  byId("slider").addEventListener("input", () => {
    setEpsilon(fromSlider(Number(byId("slider").value)), { from: byId("slider") });
    ask();
  });
  byId("epsilon").addEventListener("input", () => {
    const [minimum, maximum] = method().epsilons;
    const value = byId("epsilon").valueAsNumber;
    if (!(value >= minimum && value <= maximum)) {
      byId("epsilon").setAttribute("aria-invalid", "true");
      say(`Epsilon must be from ${minimum} to ${maximum} here.`);
      return;
    }
    byId("epsilon").removeAttribute("aria-invalid");
    setEpsilon(value, { from: byId("epsilon") });
    ask();
  });
  byId("epsilon").addEventListener("change", () => {
    if (!byId("epsilon").hasAttribute("aria-invalid")) return;
    byId("epsilon").removeAttribute("aria-invalid");
    byId("epsilon").value = state.epsilon[state.method];
    say(null);
  });
  byId("again").addEventListener("click", () => ask());
  byId("pieces").addEventListener("keydown", walk);
  let width = 0;
  new ResizeObserver(() => {
    const now = byId("results").clientWidth;
    if (now !== width && state.shown) drawFigures(state.shown);
    width = now;
  }).observe(byId("results"));
}

function offer(offered) {
  state.limit = offered.characters;
  for (const entry of offered.methods) {
    state.methods[entry.name] = entry;
    state.epsilon[entry.name] = entry.epsilons[2];
    const radio = element("input", { type: "radio", name: "method", value: entry.name });
    radio.addEventListener("change", () => {
      setMethod(entry.name);
      ask({ dropsPending: true });
    });
    byId("methods").append(element("label", {}, radio, entry.title));
  }
  byId("methods").querySelector("input").checked = true;
  for (const entry of offered.samples) {
    const button = element("button", { type: "button", title: entry.text }, inWords(entry.title));
    button.addEventListener("click", () => setText(entry.text));
    byId("samples").append(button);
  }
  setMethod(offered.methods[0].name);
  const texts = offered.samples.map((entry) => entry.text);
  setText(texts.reduce((one, other) => (other.length > one.length ? other : one))); // the longest shows the most
}

function inWords(title) {
  return title.replace(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`); // BookRestaurant
}

// -- the preview ----------------------------------------------------------------------------------------------------

function show(preview) {
  byId("results").hidden = false;
  byId("guarantee").textContent = capital(preview.guarantee);
  byId("strength").textContent = preview.strength;
  byId("guarantee-section").classList.toggle("weak", !preview.protects);
  clearTimeout(speaking);
  speaking = setTimeout(() => {
    byId("spoken").textContent = `Epsilon ${preview.epsilon}. ${preview.guarantee} ${preview.strength}`;
  }, SPOKEN);
  byId("draws").replaceChildren(...preview.draws.map((entry) => element("li", {}, entry)));
  showPieces(preview.pieces);
  byId("attack").textContent = preview.attack.sentence;
  byId("first").textContent = preview.neighbours.first;
  byId("second").textContent = preview.neighbours.second;
  byId("overlap").textContent = preview.neighbours.sentence;
  drawFigures(preview);
}

function capital(sentence) {
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}

function showPieces(pieces) {
  const words = pieces.map((entry, place) => [entry, place]).filter(([entry]) => entry.stays !== null || entry.replacements.length);
  byId("pieces-section").hidden = words.length === 0;
  if (!words.length) return;
  const whole = pieces.length === 1 && /\s/.test(pieces[0].text.trim());
  byId("pieces").classList.toggle("long", words.length > LONG);
  byId("pieces").classList.toggle("whole", whole);
  byId("pieces-help").textContent = whole
    ? "The whole text is replaced by a text of a public bank."
    : `Shade, underline and number show how likely a word stays. Choose a word, or move with the arrow keys, to see its most likely replacements.`;
  if (!words.some(([, place]) => place === state.chosen)) state.chosen = words[0][1];
  const old = [...byId("pieces").children];
  const same = old.length === pieces.length && pieces.every((entry, place) => old[place].dataset.text === entry.text);
  if (!same) byId("pieces").replaceChildren(...pieces.map(makePiece));
  for (const [entry, place] of words) describe(byId("pieces").children[place], entry, place);
  showLikeliest(pieces[state.chosen]);
}

function makePiece(piece, place) {
  const isWord = piece.stays !== null || piece.replacements.length;
  const node = isWord ? element("button", { type: "button", class: "word" }, piece.text, element("span", { class: "hidden" }, ", stays in "), element("small")) : element("span", {}, piece.text);
  node.dataset.text = piece.text;
  if (isWord) {
    node.addEventListener("click", () => choose(place));
    node.addEventListener("focus", () => choose(place));
  }
  return node;
}

function describe(node, piece, place) {
  const stays = piece.stays ?? 0;
  node.style.setProperty("--stays", stays);
  node.classList.toggle("some", stays >= 0.25 && stays < 0.75);
  node.classList.toggle("most", stays >= 0.75);
  node.querySelector("small").textContent = percent(stays);
  node.title = `stays in ${percent(stays)} of draws`;
  node.tabIndex = place === state.chosen ? 0 : -1;
  node.setAttribute("aria-pressed", String(place === state.chosen));
}

function choose(place) {
  if (place === state.chosen) return;
  state.chosen = place;
  showPieces(state.shown.pieces);
}

function walk(event) {
  const words = [...byId("pieces").querySelectorAll(".word")];
  const at = words.indexOf(document.activeElement);
  const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: words.length - 1 }[event.key];
  if (at < 0 || to === undefined) return;
  event.preventDefault();
  words[Math.max(0, Math.min(to, words.length - 1))].focus();
}

function showLikeliest(piece) {
  const rows = piece.replacements.map(([text, chance]) =>
    element("li", {}, element("span", {}, text), element("meter", { min: 0, max: 1, value: chance, "aria-hidden": "true" }), element("span", {}, percent(chance))));
  const named = piece.text.length > 40 ? "The text" : `“${piece.text}”`;
  byId("likeliest").replaceChildren(
    element("h3", {}, `${named} stays in ${percent(piece.stays ?? 0)} of draws${rows.length ? "; most likely replacements" : ""}`),
    element("ul", { class: piece.text.length > 40 ? "likely texts" : "likely" }, ...rows),
  );
}

// -- figures --------------------------------------------------------------------------------------------------------
// Colours are attributes, for saved pictures; in the page the style sheet overrides them (light or dark).

const INK = "#1b2426";
const ONE = "#00695c";
const OTHER = "#b9d7d2";

function drawn(name, attributes, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function picture(width, height, title) {
  return drawn(
    "svg",
    {
      xmlns: SVG, viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": title,
      "font-family": "system-ui, sans-serif", "font-size": 13,
    },
    drawn("title", {}, title),
    drawn("rect", { class: "ground", x: 0, y: 0, width, height, fill: "#ffffff" }),
  );
}

function label(text, x, y, { anchor = "start", room = Infinity } = {}) {
  const most = Math.floor(room / 6.8);
  const node = drawn("text", { class: "text", x, y, fill: INK, "text-anchor": anchor });
  node.append(text.length > most ? `${text.slice(0, Math.max(1, most - 1)).trimEnd()}…` : text);
  return node;
}

function bar(kind, x, y, width, height) {
  const size = { x, y, width: Math.max(width, 1), height };
  if (kind === "one") return [drawn("rect", { class: "one", ...size, fill: ONE, stroke: INK })];
  // the second is hatched, so that it differs in greyscale too
  const shapes = [drawn("rect", { class: "other edge", ...size, fill: OTHER, stroke: INK })];
  for (let at = x + 6; at < x + width; at += 6) {
    const reach = Math.min(height, at - x);
    shapes.push(drawn("line", { class: "edge", x1: at, y1: y, x2: at - reach, y2: y + reach, stroke: INK, "stroke-width": 1 }));
  }
  return shapes;
}

function drawFigures(preview) {
  for (const figure of document.querySelectorAll("figure")) {
    const width = Math.max(240, Math.min(760, figure.clientWidth || 300));
    const node = attackPicture(preview, width);
    const before = figure.querySelector("svg");
    if (before) before.replaceWith(node);
    else figure.replaceChildren(node, saveButtons(figure));
  }
}

function attackPicture({ attack }, width) {
  const node = picture(width, 92, `The best adversary is right in ${percent(attack.success)}; chance level ${percent(attack.chance)}`);
  const room = width - 60;
  [["sees the output", attack.success, "one"], ["sees nothing", attack.chance, "other"]].forEach(([name, share, kind], row) => {
    const top = 4 + row * 44;
    node.append(label(name, 1, top + 12), ...bar(kind, 1, top + 18, room * share, 16), label(percent(share), room * share + 7, top + 31));
  });
  return node;
}

// -- saving a picture -----------------------------------------------------------------------------------------------

function saveButtons(figure) {
  const name = figure.dataset.name;
  const svg = element("button", { type: "button", "aria-label": `Save as SVG: ${name}` }, "Save as SVG");
  const png = element("button", { type: "button", "aria-label": `Save as PNG: ${name}` }, "Save as PNG");
  svg.addEventListener("click", () => download(asFile(figure), `dptext-${name}.svg`));
  png.addEventListener("click", async () => download(await asPixels(figure), `dptext-${name}.png`));
  return element("div", { class: "save" }, svg, png);
}

function asFile(figure) {
  const text = new XMLSerializer().serializeToString(figure.querySelector("svg"));
  return new Blob([text], { type: "image/svg+xml" });
}

async function asPixels(figure) {
  const address = URL.createObjectURL(asFile(figure));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = element("canvas");
    canvas.width = 2 * image.naturalWidth;
    canvas.height = 2 * image.naturalHeight;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  } finally {
    URL.revokeObjectURL(address);
  }
}

function download(blob, name) {
  const address = URL.createObjectURL(blob);
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

// -- begin ----------------------------------------------------------------------------------------------------------

async function begin() {
  connect();
  byId("busy").textContent = "Reading the public word vectors…";
  try {
    const answer = await fetch("methods", { cache: "no-store" });
    offer(await answer.json());
  } catch {
    say("The server does not respond. If it was stopped, start it again: dptext playground");
  }
}

begin();
