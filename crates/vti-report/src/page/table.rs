//! Tables: sorted by clicking a heading, each row a card on narrow screens, long ones folded.

use std::fmt::Write;

use crate::markup::escape;

/// What a column holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Name,
    Number,
    Plot,
    /// A plot of its own width.
    SmallPlot,
}

/// A column.
pub(super) struct Column {
    kind: Kind,
    title: String,
    /// Markup instead of the title.
    picture: Option<String>,
}

impl Column {
    pub(super) fn new(kind: Kind, title: &str) -> Self {
        Self { kind, title: title.into(), picture: None }
    }

    /// A column whose heading is drawn.
    pub(super) fn drawn(kind: Kind, picture: String) -> Self {
        Self { kind, title: String::new(), picture: Some(picture) }
    }

    fn class(&self) -> &'static str {
        match self.kind {
            Kind::Name => "name",
            Kind::Number => "number",
            Kind::Plot => "plot",
            Kind::SmallPlot => "plot small",
        }
    }
}

/// A cell: markup, and the number by which it is sorted.
pub(super) struct Cell {
    html: String,
    key: Option<f64>,
}

impl Cell {
    /// A name, which may be broken after its punctuation.
    pub(super) fn name(text: &str) -> Self {
        const PUNCTUATION: [char; 5] = ['_', '.', ':', '-', '/'];
        let parts: Vec<String> = text.split_inclusive(PUNCTUATION).map(escape).collect();
        Self { html: parts.join("<wbr/>"), key: None }
    }

    /// A text of several words; very long ones are cut on screen and whole when pointed at.
    pub(super) fn label(text: &str) -> Self {
        let text = escape(text);
        Self { html: format!("<span class=\"label\" title=\"{text}\">{text}</span>"), key: None }
    }

    /// Markup that is already safe.
    pub(super) fn html(html: String) -> Self {
        Self { html, key: None }
    }

    /// A number as it is shown and as it is sorted.
    pub(super) fn number(shown: String, key: f64) -> Self {
        Self { html: shown, key: key.is_finite().then_some(key) }
    }

    /// With markup behind it.
    pub(super) fn followed_by(mut self, markup: &str) -> Self {
        self.html.push_str(markup);
        self
    }
}

/// A table; `rows` beyond `shown` are folded under `more`.
pub(super) fn folded(columns: &[Column], mut rows: Vec<Vec<Cell>>, shown: usize, more: &str) -> String {
    let rest = rows.split_off(shown.min(rows.len()));
    let mut html = table(columns, &rows);
    if !rest.is_empty() {
        let _ = write!(html, "<details><summary>{}</summary>{}</details>", escape(more), table(columns, &rest));
    }
    html
}

fn table(columns: &[Column], rows: &[Vec<Cell>]) -> String {
    let mut html = String::from("<div class=\"scroll\"><table class=\"sortable\"><thead><tr>");
    for column in columns {
        let content = column.picture.clone().unwrap_or_else(|| escape(&column.title));
        let _ = write!(html, "<th class=\"{}\" scope=\"col\">{content}</th>", column.class());
    }
    html.push_str("</tr></thead><tbody>");
    for row in rows {
        html.push_str("<tr>");
        for (column, cell) in columns.iter().zip(row) {
            let _ = write!(html, "<td class=\"{}\"", column.class());
            if column.kind == Kind::Number {
                let _ = write!(html, " data-label=\"{}\"", escape(&column.title));
            }
            if let Some(key) = cell.key {
                let _ = write!(html, " data-key=\"{key:e}\"");
            }
            let _ = write!(html, ">{}</td>", cell.html);
        }
        html.push_str("</tr>\n");
    }
    html + "</tbody></table></div>"
}
