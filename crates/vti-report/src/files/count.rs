//! Curves, positions and members of components: `curves.csv`, `positions.csv`, `memberships.csv`.

use vti::answer::{Curve, Memberships, Positions};

use super::{Cells, CsvTable, FileError};

/// `curves.csv`: every place of every curve, with mean, median and the ends of its bands.
pub fn curves_csv(curves: &[Curve], cells: Cells) -> Result<Vec<u8>, FileError> {
    let bands = curves.first().map_or(&[][..], |curve| &curve.bands);
    let ends = bands.iter().flat_map(|band| {
        let percent = (100.0 * band.level).round();
        [format!("low_{percent}"), format!("high_{percent}")]
    });
    let names = ["curve", "x", "mean", "median"].into_iter().map(String::from);
    let mut table = CsvTable::new(cells, names.chain(ends))?;
    for curve in curves {
        for (place, x) in curve.x.iter().enumerate() {
            let at = |values: &[f64]| values.get(place).map_or_else(String::new, f64::to_string);
            let first = [curve.name.clone(), x.to_string(), at(&curve.mean), at(&curve.median)];
            let ends = curve.bands.iter().take(bands.len()).flat_map(|band| [at(&band.low), at(&band.high)]);
            table.row(first.into_iter().chain(ends))?;
        }
    }
    table.bytes()
}

/// `positions.csv`: the expected number of components in every interval.
pub fn positions_csv(positions: &[Positions], cells: Cells) -> Result<Vec<u8>, FileError> {
    let mut table = CsvTable::new(cells, ["positions", "from", "to", "expected"])?;
    for found in positions {
        for (ends, expected) in found.edges.windows(2).zip(&found.expected) {
            table.row([found.name.clone(), ends[0].to_string(), ends[1].to_string(), expected.to_string()])?;
        }
    }
    table.bytes()
}

/// `memberships.csv`: every observation, the component it is most probably from, and the probability of each, given their most
/// probable number.
pub fn memberships_csv(memberships: &Memberships, cells: Cells) -> Result<Vec<u8>, FileError> {
    let Memberships { count, names, values, probabilities } = memberships;
    let components = (1..=*count).map(|component| format!("p{component}"));
    let first = ["row".to_string()].into_iter().chain(names.iter().cloned()).chain(["component".into()]);
    let mut table = CsvTable::new(cells, first.chain(components))?;
    for (row, (values, shares)) in values.iter().zip(probabilities).enumerate() {
        let most =
            shares.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(component, _)| component + 1);
        let numbers = values.iter().map(f64::to_string);
        let cells = [(row + 1).to_string()].into_iter().chain(numbers).chain([most.to_string()]);
        table.row(cells.chain(shares.iter().map(f64::to_string)))?;
    }
    table.bytes()
}
