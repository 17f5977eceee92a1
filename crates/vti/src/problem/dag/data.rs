//! The table of a graph: a column for each node, and how columns are brought to a common scale.

use serde::{Deserialize, Serialize};

/// Measurements: a column per node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeData {
    /// What people call the nodes.
    pub names: Vec<String>,
    /// The numbers of each node, all columns equally long.
    pub columns: Vec<Vec<f64>>,
}

/// How columns are brought to a common scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scaling {
    /// As they were measured.
    None,
    /// Each column less its mean.
    Centre,
    /// Each column less its mean, divided by its standard deviation.
    Columns,
    /// Each column less its mean, all divided by one standard deviation.
    Table,
}

impl Scaling {
    /// As it is written in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Centre => "centre",
            Self::Columns => "columns",
            Self::Table => "table",
        }
    }
}

impl NodeData {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    /// Brings columns to a scale; what each was divided by.
    pub fn scale(&mut self, scaling: Scaling) -> Vec<f64> {
        if scaling != Scaling::None {
            for column in &mut self.columns {
                let centre = mean(column.iter().copied());
                column.iter_mut().for_each(|value| *value -= centre);
            }
        }
        let mean_square = |column: &Vec<f64>| mean(column.iter().map(|value| value * value));
        let squares: Vec<f64> = self.columns.iter().map(mean_square).collect();
        let scales: Vec<f64> = match scaling {
            Scaling::None | Scaling::Centre => vec![1.0; squares.len()],
            Scaling::Columns => squares.iter().map(|square| square.sqrt()).collect(),
            Scaling::Table => vec![mean(squares.iter().copied()).sqrt(); squares.len()],
        };
        // A column that never changes has no scale, and is left as it is.
        let scales: Vec<f64> = scales.into_iter().map(|scale| if scale > 0.0 { scale } else { 1.0 }).collect();
        for (column, scale) in self.columns.iter_mut().zip(&scales) {
            column.iter_mut().for_each(|value| *value /= scale);
        }
        scales
    }

    /// The first column whose mean is more than a standard deviation from 0, which nodes without parents are taken to have:
    /// its name and its mean.
    pub fn far_from_zero(&self) -> Option<(&str, f64)> {
        let mut columns = self.names.iter().zip(&self.columns);
        columns.find_map(|(name, column)| {
            let centre = mean(column.iter().copied());
            let variance = mean(column.iter().map(|value| (value - centre).powi(2)));
            (centre * centre > variance).then_some((name.as_str(), centre))
        })
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> NodeData {
        let names = ["a", "b"].map(String::from).to_vec();
        NodeData { names, columns: vec![vec![1.0, 2.0, 6.0], vec![-10.0, 0.0, 40.0]] }
    }

    fn scaled(scaling: Scaling) -> (NodeData, Vec<f64>) {
        let mut table = table();
        let scales = table.scale(scaling);
        (table, scales)
    }

    /// Means and mean squares.
    fn moments(table: &NodeData) -> Vec<(f64, f64)> {
        let square = |column: &Vec<f64>| mean(column.iter().map(|value| value * value));
        table.columns.iter().map(|column| (mean(column.iter().copied()), square(column))).collect()
    }

    #[test]
    fn scales_do_what_they_say() {
        assert_eq!(scaled(Scaling::None), (table(), vec![1.0, 1.0]));
        let (centred, scales) = scaled(Scaling::Centre);
        assert_eq!((centred.columns, scales), (vec![vec![-2.0, -1.0, 3.0], vec![-20.0, -10.0, 30.0]], vec![1.0, 1.0]));
        let (columns, scales) = scaled(Scaling::Columns);
        assert!((scales[1] / scales[0] - 10.0).abs() < 1e-12, "{scales:?}");
        assert!(moments(&columns).iter().all(|(mean, square)| mean.abs() < 1e-12 && (square - 1.0).abs() < 1e-12));
        let (whole, scales) = scaled(Scaling::Table);
        assert_eq!(scales[0], scales[1]);
        let squares = moments(&whole);
        assert!(
            (squares[0].1 + squares[1].1 - 2.0).abs() < 1e-12 && (squares[1].1 / squares[0].1 - 100.0).abs() < 1e-9
        );
    }

    #[test]
    fn means_far_from_zero_are_found() {
        assert_eq!(table().far_from_zero(), Some(("a", 3.0)));
        assert_eq!(scaled(Scaling::Centre).0.far_from_zero(), None);
    }
}
