"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const moments = data.moments || [], key = 64;
  if (!moments.length) return;
  const stage = at("stage"), picture = at("picture"), scrub = at("scrub"), where = at("where"), play = at("play");
  const items = at("moments").children;
  let now = 0, shown = 0, lines = data.pictures[0].slice(4), timer = 0, rate = 1;

  // difference makes the lines of picture n of those of the picture before it.
  const difference = (n, before) => {
    const [, , head, tail, ...between] = data.pictures[n];
    return before.slice(0, head).concat(between, tail ? before.slice(-tail) : []);
  };
  const show = (n) => {
    if (n === shown) return;
    let from = shown + 1;
    if (n < shown || n - n % key > shown) {
      from = n - n % key;
      lines = [];
    }
    for (let i = from; i <= n; i++) lines = difference(i, lines);
    shown = n;
    stage.setAttribute("viewBox", `0 0 ${data.pictures[n][0]} ${data.pictures[n][1]}`);
    picture.innerHTML = lines.map((l) => data.lines[l]).join("");
  };
  const go = (n, follow) => {
    items[now].className = "";
    now = Math.max(0, Math.min(moments.length - 1, n));
    items[now].className = "now";
    show(moments[now][0]);
    scrub.value = now;
    where.textContent = items[now].textContent + (rate === 1 ? "" : ` (${rate}×)`);
    if (follow) items[now].scrollIntoView({ block: "nearest" });
  };
  const stop = () => {
    clearTimeout(timer);
    timer = 0;
    play.textContent = "play";
  };
  const next = () => {
    if (now + 1 >= moments.length) return stop();
    const wait = Math.min(2000, (moments[now + 1][1] - moments[now][1]) / rate);
    timer = setTimeout(() => { go(now + 1, true); next(); }, wait);
    play.textContent = "pause";
  };
  const toggle = () => {
    if (timer) return stop();
    if (now + 1 >= moments.length) go(0, true);
    next();
  };
  const jump = (n) => { stop(); go(n, true); };
  const marked = (by) => {
    let n = now + by;
    while (items[n] && items[n].dataset.mark === undefined) n += by;
    if (items[n]) jump(n);
  };
  const byHash = () => {
    const m = /^#m(\d+)$/.exec(location.hash);
    if (m) jump(Number(m[1]));
  };
  play.addEventListener("click", toggle);
  scrub.addEventListener("input", () => jump(Number(scrub.value)));
  addEventListener("hashchange", byHash);
  addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.altKey || e.metaKey) return;
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[e.key];
    if (step) jump(now + step);
    else if (e.key === "Home") jump(0);
    else if (e.key === "End") jump(moments.length - 1);
    else if (e.key === "m" || e.key === "M") marked(e.key === "m" ? 1 : -1);
    else if (e.key === " ") toggle();
    else if (e.key === "+" || e.key === "-") { rate = Math.max(.125, Math.min(64, e.key === "+" ? rate * 2 : rate / 2)); go(now); }
    else return;
    e.preventDefault();
  });
  at("controls").hidden = false;
  go(0);
  byHash();
})();
