//! Which terms belong to the model.

use super::bars::{Ruler, legend, number_cells, number_columns};
use super::exact_name;
use super::table::{Cell, Column, Kind, folded};
use crate::input::{Inclusion, Report};

/// Terms shown unfolded.
const SHOWN: usize = 30;

pub(super) fn section(report: &Report) -> Option<String> {
    if report.inclusion.is_empty() {
        return None;
    }
    let count = report.inclusion.len();
    let exact = exact_name(report);
    let ruler = Ruler::unit();
    let mut columns = vec![Column::new(Kind::Name, "term"), ruler.column()];
    columns.extend(number_columns(exact));
    let row = |term: &&Inclusion| {
        let mut cells = vec![Cell::name(&term.name), ruler.bars(&term.probability, exact.unwrap_or_default())];
        cells.extend(number_cells(&term.probability, exact.is_some()));
        cells
    };
    let rows: Vec<Vec<Cell>> = leading_first(&report.inclusion).iter().map(row).collect();
    let order = if count > SHOWN {
        format!(" The {SHOWN} most probable of {count} terms come first; the others are folded below.")
    } else {
        String::new()
    };
    Some(format!(
        "<h2>Inclusion probabilities</h2><p class=\"caption\">How probable it is that each term belongs to the model. \
         Terms above 0.5 form the median-probability model.{order}</p>{}{}",
        legend(exact),
        folded(&columns, rows, SHOWN, &format!("The other {} terms", count.saturating_sub(SHOWN)))
    ))
}

/// Few terms stay in the order of the data; of many, the most probable come first.
fn leading_first(terms: &[Inclusion]) -> Vec<&Inclusion> {
    let mut order: Vec<&Inclusion> = terms.iter().collect();
    if terms.len() > SHOWN {
        order.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
    }
    order
}

/// The corrected probability, or that of q where there is none.
fn rank(term: &Inclusion) -> f64 {
    let probability = &term.probability;
    [probability.corrected, probability.q].into_iter().find(|value| value.is_finite()).unwrap_or(-1.0)
}
