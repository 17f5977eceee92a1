// Tables are sorted by a column when its heading is clicked; again turns the order around.
document.querySelectorAll("table.sortable").forEach(function (table) {
  var heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach(function (head, column) {
    if (head.classList.contains("plot")) { return; }
    head.setAttribute("aria-sort", "none");
    head.tabIndex = 0;
    function sort() {
      var first = head.classList.contains("number") ? "descending" : "ascending";
      var other = first === "ascending" ? "descending" : "ascending";
      var order = head.getAttribute("aria-sort") === first ? other : first;
      heads.forEach(function (h) { if (h.hasAttribute("aria-sort")) { h.setAttribute("aria-sort", "none"); } });
      head.setAttribute("aria-sort", order);
      var sign = order === "ascending" ? 1 : -1;
      var body = table.tBodies[0];
      var numeric = head.classList.contains("number");
      Array.from(body.rows).map(function (row) {
        var cell = row.cells[column];
        return { row: row, key: numeric ? parseFloat(cell.dataset.key) : cell.textContent };
      }).sort(function (a, b) {
        if (!numeric) { return sign * a.key.localeCompare(b.key, undefined, { numeric: true }); }
        if (isNaN(a.key) || isNaN(b.key)) { return isNaN(a.key) - isNaN(b.key); }
        return sign * (a.key - b.key);
      }).forEach(function (item) { body.appendChild(item.row); });
    }
    head.addEventListener("click", sort);
    head.addEventListener("keydown", function (event) { if (event.key === "Enter") { sort(); } });
  });
});
