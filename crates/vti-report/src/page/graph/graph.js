// Pointing at a node or an edge, or walking to it with the arrow keys, lights what belongs to it and shows its numbers.
document.querySelectorAll(".graph").forEach(function (graph) {
  var panel = graph.closest(".graph-box").querySelector(".inspect");
  var hint = panel.textContent +
    " With the keyboard: reach the drawing with Tab, walk with the arrow keys, leave with Escape.";
  var all = Array.from(graph.querySelectorAll("[data-nodes]"));
  var held = null;
  function nodesOf(item) { return item.dataset.nodes.split(" "); }
  function say(lines) {
    panel.replaceChildren.apply(panel, lines.map(function (line, index) {
      var part = document.createElement(index === 0 ? "strong" : "span");
      part.textContent = line;
      return part;
    }));
  }
  function show(item) {
    graph.classList.toggle("dimmed", item !== null);
    all.forEach(function (other) { other.classList.remove("lit", "held"); });
    if (item === null) {
      panel.replaceChildren(Object.assign(document.createElement("span"), { textContent: hint }));
      return;
    }
    var own = nodesOf(item);
    var near = all.filter(function (other) {
      return nodesOf(other).some(function (node) { return own.includes(node); });
    });
    if (own.length === 2) {
      near = near.filter(function (other) { return other === item || nodesOf(other).length === 1; });
    } else {
      var around = near.filter(shown).flatMap(nodesOf);
      near = near.concat(all.filter(function (other) {
        return nodesOf(other).length === 1 ? around.includes(other.dataset.nodes) : false;
      }));
    }
    near.forEach(function (other) { other.classList.add("lit"); });
    item.classList.add("held");
    say(item.querySelector("title").textContent.split("\n"));
  }
  function shown(item) { return item.getClientRects().length !== 0; }
  function step(by) {
    var items = all.filter(shown);
    var at = items.indexOf(held);
    held = items[at === -1 ? (by === 1 ? 0 : items.length - 1) : (at + by + items.length) % items.length];
    show(held);
  }
  graph.tabIndex = 0;
  show(null);
  graph.addEventListener("pointerover", function (event) {
    show(event.target.closest("[data-nodes]") || held);
  });
  graph.addEventListener("pointerleave", function () { show(held); });
  graph.addEventListener("click", function (event) {
    held = event.target.closest("[data-nodes]");
    show(held);
  });
  graph.addEventListener("keydown", function (event) {
    var by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (by) {
      event.preventDefault();
      step(by);
    } else if (event.key === "Escape") {
      held = null;
      show(null);
    }
  });
  graph.addEventListener("blur", function () { held = null; show(null); });
  graph.closest(".graph-box").addEventListener("change", function () { held = null; show(null); });
});
