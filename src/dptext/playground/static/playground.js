// The page of `dptext playground`. It talks to the server it came from, keeps nothing, and shows all text as text.
"use strict";

const STEPS = 200;
const LONG = 60; // words: beyond that their percentages stand in their details alone
const TYPING = 150; // milliseconds without a key before a text is sent
const SPOKEN = 900; // milliseconds before a promise is said
const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);

const state = { ways: {}, way: null, epsilon: {}, choice: {}, chosen: 0, shown: null, text: null, limit: 0 };
let asking = null; // the request under way
let wanted = false; // something changed since it began
let timer = 0;
let speaking = 0;

// -- small things ---------------------------------------------------------------------------------------------------

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null) made.setAttribute(key, value);
  }
  made.append(...children); // strings become text nodes
  return made;
}

function percent(share) {
  if (share > 0 && share < 0.001) return "<0.1%";
  if (share < 1 && share > 0.999) return ">99.9%";
  return `${(100 * share).toFixed(1).replace(/\.0$/, "")}%`;
}

function rounded(epsilon) {
  return Number(epsilon.toPrecision(3));
}

function way() {
  return state.ways[state.way];
}

function fromSlider(step) {
  const [least, most] = way().epsilons;
  if (step <= 0) return least;
  return step >= STEPS ? most : rounded(least * (most / least) ** (step / STEPS));
}

function toSlider(epsilon) {
  const [least, most] = way().epsilons;
  return Math.round((STEPS * Math.log(epsilon / least)) / Math.log(most / least));
}

// -- asking ---------------------------------------------------------------------------------------------------------

// One request at a time: while a slider is dragged, the next one goes when the last one is back.
function ask({ drops = false } = {}) {
  if (asking && !drops) {
    wanted = true;
    return;
  }
  asking?.abort();
  send();
}

async function send() {
  const own = new AbortController();
  asking = own;
  wanted = false;
  const asked = { way: state.way, text: byId("text").value, epsilon: state.epsilon[state.way], choice: state.choice[state.way] };
  if (byId("neighbour").value.trim()) asked.neighbour = byId("neighbour").value;
  const slow = setTimeout(() => {
    byId("busy").textContent = "Computing…";
    byId("results").setAttribute("aria-busy", "true");
  }, 250);
  try {
    if (!asked.text.trim()) throw new Error("The text is empty: type some words, or choose a sample.");
    const answer = await fetch("show", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(asked),
      signal: own.signal,
      cache: "no-store",
    });
    if (answer.status === 409) {
      setTimeout(() => ask(), 200); // another window of this page was later
      return;
    }
    const found = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Error(found.error ?? `The server answered ${answer.status}, say because it is busy. Try again.`);
    state.shown = found;
    state.text = asked.text;
    say(null);
    show(found);
  } catch (error) {
    if (own.signal.aborted) return;
    if (asked.text !== state.text) byId("results").hidden = true; // what stands there is of another text
    say(error instanceof TypeError ? "The server does not answer. Was it stopped? Start it again: dptext playground" : error.message);
  } finally {
    clearTimeout(slow);
    if (asking === own) {
      asking = null;
      byId("busy").textContent = "";
      byId("results").removeAttribute("aria-busy");
      if (wanted) send();
    }
  }
}

function say(problem) {
  if (problem === null && byId("epsilon").hasAttribute("aria-invalid")) return; // an answer to an older epsilon
  byId("problem").hidden = problem === null;
  byId("problem").textContent = problem ?? "";
}

// -- controls -------------------------------------------------------------------------------------------------------

function setWay(name) {
  state.way = name;
  byId("choices").hidden = way().choices.length < 2;
  byId("choice").replaceChildren(...way().choices.map((each) => element("option", { value: each }, each)));
  byId("choice").value = state.choice[name];
  const [least, most] = way().epsilons;
  byId("epsilon").min = least;
  byId("epsilon").max = most;
  byId("neighbour").value = "";
  state.chosen = 0;
  setEpsilon(state.epsilon[name]);
}

function setEpsilon(epsilon, { from = null } = {}) {
  state.epsilon[state.way] = epsilon;
  if (from !== byId("slider")) byId("slider").value = toSlider(epsilon);
  if (from !== byId("epsilon")) byId("epsilon").value = epsilon;
  byId("slider").setAttribute("aria-valuetext", `epsilon ${epsilon}`);
}

function soon() {
  clearTimeout(timer);
  timer = setTimeout(() => ask({ drops: true }), TYPING);
}

function setText(text) {
  byId("text").value = text;
  byId("neighbour").value = "";
  count();
  state.chosen = 0;
  ask({ drops: true });
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
  byId("neighbour").addEventListener("input", soon);
  byId("choice").addEventListener("change", () => {
    state.choice[state.way] = byId("choice").value;
    ask({ drops: true });
  });
  byId("slider").addEventListener("input", () => {
    setEpsilon(fromSlider(Number(byId("slider").value)), { from: byId("slider") });
    ask();
  });
  byId("epsilon").addEventListener("input", () => {
    const [least, most] = way().epsilons;
    const given = byId("epsilon").valueAsNumber;
    if (!(given >= least && given <= most)) {
      byId("epsilon").setAttribute("aria-invalid", "true");
      say(`Epsilon must be from ${least} to ${most} here.`);
      return;
    }
    byId("epsilon").removeAttribute("aria-invalid");
    setEpsilon(given, { from: byId("epsilon") });
    ask();
  });
  byId("epsilon").addEventListener("change", () => {
    if (!byId("epsilon").hasAttribute("aria-invalid")) return;
    byId("epsilon").removeAttribute("aria-invalid");
    byId("epsilon").value = state.epsilon[state.way];
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
  byId("note").textContent = offered.note;
  state.limit = offered.characters;
  for (const each of offered.ways) {
    state.ways[each.name] = each;
    state.epsilon[each.name] = each.epsilons[2];
    state.choice[each.name] = each.choices[0];
    const radio = element("input", { type: "radio", name: "way", value: each.name });
    radio.addEventListener("change", () => {
      setWay(each.name);
      ask({ drops: true });
    });
    byId("ways").append(element("label", {}, radio, each.title));
  }
  byId("ways").querySelector("input").checked = true;
  for (const each of offered.samples) {
    const button = element("button", { type: "button", title: each.text }, inWords(each.title));
    button.addEventListener("click", () => setText(each.text));
    byId("samples").append(button);
  }
  setWay(offered.ways[0].name);
  const texts = offered.samples.map((each) => each.text);
  setText(texts.reduce((one, other) => (other.length > one.length ? other : one))); // it shows the most
}

function inWords(title) {
  return title.replace(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`); // BookRestaurant
}

// -- what is shown --------------------------------------------------------------------------------------------------

function show(found) {
  byId("results").hidden = false;
  byId("promise").textContent = capital(found.promise);
  byId("strength").textContent = found.strength;
  byId("promise-section").classList.toggle("weak", !found.protects);
  clearTimeout(speaking);
  speaking = setTimeout(() => {
    byId("spoken").textContent = `Epsilon ${found.epsilon}. ${found.promise} ${found.strength}`;
  }, SPOKEN);
  byId("draws").replaceChildren(...found.draws.map((each) => element("li", {}, each)));
  showPieces(found.pieces);
  byId("attacker").textContent = found.attacker.says;
  byId("first").textContent = found.neighbours.first;
  byId("second").textContent = found.neighbours.second;
  byId("overlap").textContent = found.neighbours.says;
  byId("numbers").hidden = found.neighbours.outcomes.length === 0;
  byId("outcomes").replaceChildren(
    ...found.neighbours.outcomes.map(([name, one, other]) =>
      element("tr", {}, element("td", {}, name), element("td", {}, percent(one)), element("td", {}, percent(other)))),
  );
  byId("points-section").hidden = found.points === null;
  drawFigures(found);
}

function capital(sentence) {
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}

function showPieces(pieces) {
  const words = pieces.map((each, place) => [each, place]).filter(([each]) => each.stays !== null || each.becomes.length);
  byId("pieces-section").hidden = words.length === 0;
  if (!words.length) return;
  const whole = pieces.length === 1 && /\s/.test(pieces[0].text.trim());
  byId("pieces").classList.toggle("long", words.length > LONG);
  byId("pieces").classList.toggle("whole", whole);
  byId("pieces-help").textContent = whole
    ? "The whole text is replaced by one of a public bank."
    : `Shade, underline and number say how often a word comes out as it is. Choose a word, or walk with the arrow keys, to see what else it becomes.`;
  if (!words.some(([, place]) => place === state.chosen)) state.chosen = words[0][1];
  const old = [...byId("pieces").children];
  const same = old.length === pieces.length && pieces.every((each, place) => old[place].dataset.text === each.text);
  if (!same) byId("pieces").replaceChildren(...pieces.map(makePiece));
  for (const [each, place] of words) describe(byId("pieces").children[place], each, place);
  showLikeliest(pieces[state.chosen]);
}

function makePiece(piece, place) {
  const isWord = piece.stays !== null || piece.becomes.length;
  const made = isWord ? element("button", { type: "button", class: "word" }, piece.text, element("span", { class: "hidden" }, ", stays in "), element("small")) : element("span", {}, piece.text);
  made.dataset.text = piece.text;
  if (isWord) {
    made.addEventListener("click", () => choose(place));
    made.addEventListener("focus", () => choose(place));
  }
  return made;
}

function describe(made, piece, place) {
  const stays = piece.stays ?? 0;
  made.style.setProperty("--stays", stays);
  made.classList.toggle("some", stays >= 0.25 && stays < 0.75);
  made.classList.toggle("most", stays >= 0.75);
  made.querySelector("small").textContent = percent(stays);
  made.title = `stays in ${percent(stays)}`;
  made.tabIndex = place === state.chosen ? 0 : -1;
  made.setAttribute("aria-pressed", String(place === state.chosen));
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
  const rows = piece.becomes.map(([text, chance]) =>
    element("li", {}, element("span", {}, text), element("meter", { min: 0, max: 1, value: chance, "aria-hidden": "true" }), element("span", {}, percent(chance))));
  const named = piece.text.length > 40 ? "The text" : `“${piece.text}”`;
  byId("likeliest").replaceChildren(
    element("h3", {}, `${named} stays in ${percent(piece.stays ?? 0)}${rows.length ? "; else the likeliest are" : ""}`),
    element("ul", { class: piece.text.length > 40 ? "likely texts" : "likely" }, ...rows),
  );
}

// -- figures --------------------------------------------------------------------------------------------------------
// Colours stand in attributes, so that a saved picture has them; in the page the style sheet decides, light or dark.

const INK = "#1b2426";
const ONE = "#00695c";
const OTHER = "#b9d7d2";

function drawn(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
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
  const made = drawn("text", { class: "text", x, y, fill: INK, "text-anchor": anchor });
  made.append(text.length > most ? `${text.slice(0, Math.max(1, most - 1)).trimEnd()}…` : text);
  return made;
}

function bar(kind, x, y, width, height) {
  const size = { x, y, width: Math.max(width, 1), height };
  if (kind === "one") return [drawn("rect", { class: "one", ...size, fill: ONE, stroke: INK })];
  // the second is hatched: it differs in grey, too
  const found = [drawn("rect", { class: "other edge", ...size, fill: OTHER, stroke: INK })];
  for (let at = x + 6; at < x + width; at += 6) {
    const reach = Math.min(height, at - x);
    found.push(drawn("line", { class: "edge", x1: at, y1: y, x2: at - reach, y2: y + reach, stroke: INK, "stroke-width": 1 }));
  }
  return found;
}

function drawFigures(found) {
  for (const figure of document.querySelectorAll("figure")) {
    const width = Math.max(240, Math.min(760, figure.clientWidth || 300));
    const made = { attacker: attackerPicture, overlap: overlapPicture, vectors: vectorsPicture }[figure.dataset.name](found, width);
    if (made === null) {
      figure.replaceChildren();
      continue;
    }
    const before = figure.querySelector("svg");
    if (before) before.replaceWith(made);
    else figure.replaceChildren(made, saving(figure));
  }
}

function attackerPicture({ attacker }, width) {
  const made = picture(width, 92, `The best attacker is right in ${percent(attacker.right)}; blindly in ${percent(attacker.blind)}`);
  const room = width - 60;
  [["sees the output", attacker.right, "one"], ["sees nothing", attacker.blind, "other"]].forEach(([name, share, kind], row) => {
    const top = 4 + row * 44;
    made.append(label(name, 1, top + 12), ...bar(kind, 1, top + 18, room * share, 16), label(percent(share), room * share + 7, top + 31));
  });
  return made;
}

function overlapPicture({ neighbours }, width) {
  const { outcomes, overlap } = neighbours;
  if (!outcomes.length) return null;
  const high = 50;
  const top = 26;
  const made = picture(width, top + outcomes.length * high, `Chances of outputs for two neighbours, which overlap by ${percent(overlap)}`);
  made.append(...bar("one", 1, 5, 12, 12), label("first", 18, 16), ...bar("other", 66, 5, 12, 12), label("second", 83, 16));
  const most = Math.max(...outcomes.map(([, one, other]) => Math.max(one, other)), 1e-9);
  const room = width - 60;
  outcomes.forEach(([name, one, other], row) => {
    const y = top + row * high;
    made.append(
      label(name, 1, y + 13, { room: width - 2 }),
      ...bar("one", 1, y + 18, (room * one) / most, 11), label(percent(one), (room * one) / most + 7, y + 28),
      ...bar("other", 1, y + 31, (room * other) / most, 11), label(percent(other), (room * other) / most + 7, y + 42),
    );
  });
  return made;
}

function vectorsPicture({ points }, width) {
  if (!points || !points.length) return null;
  const height = Math.round(Math.min(width, 460));
  const edge = 14;
  const top = 26;
  const made = picture(width, height + top, "Outputs of the first text (dots) and of the second (crosses) in the plane of both vectors");
  const reach = Math.max(...points.map(({ x, y }) => Math.max(Math.abs(x), Math.abs(y))), 1e-9);
  const scale = (Math.min(width, height) / 2 - edge) / reach;
  const place = ({ x, y }) => [width / 2 + x * scale, top + height / 2 - y * scale];
  made.append(
    drawn("line", { class: "frame", x1: 0, y1: top + height / 2, x2: width, y2: top + height / 2, stroke: "#c9d3d4" }),
    drawn("line", { class: "frame", x1: width / 2, y1: top, x2: width / 2, y2: top + height, stroke: "#c9d3d4" }),
    ...mark(0, 8, 11), label("first", 18, 16), ...mark(1, 72, 11), label("second", 83, 16),
  );
  for (const each of points) made.append(...mark(each.of, ...place(each)));
  return made;
}

function mark(of, x, y) {
  if (of === 0) return [drawn("circle", { class: "dot", cx: x, cy: y, r: 3, fill: ONE })];
  return [drawn("path", { class: "cross", d: `M${x - 3} ${y - 3}L${x + 3} ${y + 3}M${x - 3} ${y + 3}L${x + 3} ${y - 3}`, stroke: INK, "stroke-width": 1.3 })];
}

// -- saving a picture -----------------------------------------------------------------------------------------------

function saving(figure) {
  const what = figure.dataset.name;
  const svg = element("button", { type: "button", "aria-label": `Save as SVG: ${what}` }, "Save as SVG");
  const png = element("button", { type: "button", "aria-label": `Save as PNG: ${what}` }, "Save as PNG");
  svg.addEventListener("click", () => download(asFile(figure), `dptext-${what}.svg`));
  png.addEventListener("click", async () => download(await asPixels(figure), `dptext-${what}.png`));
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
    const answer = await fetch("ways", { cache: "no-store" });
    offer(await answer.json());
  } catch {
    say("The server does not answer. Was it stopped? Start it again: dptext playground");
  }
}

begin();
