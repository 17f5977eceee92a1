//! Which terms belong to the model.

use vti::answer::Quantity;

use super::Content;
use super::bars::{Ruler, legend, number_cells, number_columns};
use super::table::{Cell, Column, Kind, folded};

/// Terms shown unfolded.
const SHOWN: usize = 30;

/// A term with its inclusion probability.
type Term = (String, Quantity);

pub(super) fn section(content: &Content<'_>) -> Option<String> {
    let (terms, versions) = (content.answer.found.inclusion(), content.versions);
    if terms.is_empty() {
        return None;
    }
    let count = terms.len();
    let ruler = Ruler::unit();
    let mut columns = vec![Column::new(Kind::Name, "term"), ruler.column()];
    columns.extend(number_columns(versions));
    let row = |(name, probability): &&Term| {
        let mut cells = vec![Cell::name(name), ruler.bars(probability, versions)];
        cells.extend(number_cells(probability, versions));
        cells
    };
    let rows: Vec<Vec<Cell>> = leading_first(terms).iter().map(row).collect();
    let order = if count > SHOWN {
        format!(" The {SHOWN} most probable of {count} terms come first; the others are folded below.")
    } else {
        String::new()
    };
    Some(format!(
        "<h2>Inclusion probabilities</h2><p class=\"caption\">How probable it is that each term belongs to the model. \
         Terms above 0.5 form the median-probability model.{order}</p>{}{}",
        legend(versions),
        folded(&columns, rows, SHOWN, &format!("The other {} terms", count.saturating_sub(SHOWN)))
    ))
}

/// Few terms stay in the order of the data; of many, the most probable come first.
fn leading_first(terms: &[Term]) -> Vec<&Term> {
    let mut order: Vec<&Term> = terms.iter().collect();
    if terms.len() > SHOWN {
        order.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
    }
    order
}

/// The corrected probability, or that of q where there is none.
fn rank((_, probability): &Term) -> f64 {
    [probability.corrected, probability.q].into_iter().find(|value| value.is_finite()).unwrap_or(-1.0)
}
