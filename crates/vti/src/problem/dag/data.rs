//! The table of a graph: a column for each node, and how columns are brought to a common scale.

use serde::{Deserialize, Serialize};

use super::Interventions;

/// Measurements: a column per node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeData {
    /// What people call the nodes.
    pub names: Vec<String>,
    /// The numbers of each node, all columns equally long; of a node of categories their places among its levels, from 0.
    pub columns: Vec<Vec<f64>>,
    /// What the numbers of each node are; numbers where nothing is said.
    pub kinds: Vec<NodeKind>,
}

/// What the numbers of a node are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NodeKind {
    /// Numbers.
    #[default]
    Number,
    /// Places of categories.
    Categories {
        /// What people call them; two make a binary node.
        levels: Vec<String>,
        /// Whether they stand in their order, lowest first.
        is_ordered: bool,
    },
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
    /// Nodes of numbers.
    pub fn new(names: Vec<String>, columns: Vec<Vec<f64>>) -> Self {
        let kinds = vec![NodeKind::Number; columns.len()];
        Self { names, columns, kinds }
    }

    /// What the numbers of a node are.
    pub fn kind(&self, node: usize) -> &NodeKind {
        self.kinds.get(node).unwrap_or(&NodeKind::Number)
    }

    /// The levels of a node of categories.
    pub fn categories(&self, node: usize) -> Option<&[String]> {
        match self.kind(node) {
            NodeKind::Number => None,
            NodeKind::Categories { levels, .. } => Some(levels),
        }
    }

    /// The first node of categories: its name.
    pub fn first_of_categories(&self) -> Option<&str> {
        let mut names = self.names.iter().enumerate();
        names.find_map(|(node, name)| self.categories(node).map(|_| name.as_str()))
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    /// Brings columns to a scale; what each was divided by.
    pub fn scale(&mut self, scaling: Scaling) -> Vec<f64> {
        self.scale_undisturbed(scaling, &Interventions::default())
    }

    /// The same by means and standard deviations of the rows in which nothing was set; where these are few, of those in which the
    /// node itself was not: what is set has another mean, and so has all that follows from it. Places of categories stay what they
    /// are.
    pub fn scale_undisturbed(&mut self, scaling: Scaling, interventions: &Interventions) -> Vec<f64> {
        let count = self.rows();
        let mut scales = vec![1.0; self.columns.len()];
        let numbers: Vec<usize> = (0..scales.len()).filter(|&node| self.categories(node).is_none()).collect();
        let reference: Vec<Vec<usize>> =
            (0..self.columns.len()).map(|node| interventions.reference(node, count)).collect();
        if scaling != Scaling::None {
            for &node in &numbers {
                let (column, rows) = (&mut self.columns[node], &reference[node]);
                let centre = mean(rows.iter().map(|&row| column[row]));
                column.iter_mut().for_each(|value| *value -= centre);
            }
        }
        let mean_square = |&node: &usize| {
            let column = &self.columns[node];
            mean(reference[node].iter().map(|&row| column[row] * column[row]))
        };
        let squares: Vec<f64> = numbers.iter().map(mean_square).collect();
        let of_numbers: Vec<f64> = match scaling {
            Scaling::None | Scaling::Centre => vec![1.0; squares.len()],
            Scaling::Columns => squares.iter().map(|square| square.sqrt()).collect(),
            Scaling::Table => vec![mean(squares.iter().copied()).sqrt(); squares.len()],
        };
        for (&node, scale) in numbers.iter().zip(of_numbers) {
            // A column that never changes has no scale, and is left as it is.
            scales[node] = if scale > 0.0 { scale } else { 1.0 };
            self.columns[node].iter_mut().for_each(|value| *value /= scales[node]);
        }
        scales
    }

    /// The first column whose mean is more than a standard deviation from 0, which nodes without parents are taken to have:
    /// its name and its mean. Rows in which something was set do not count.
    pub fn far_from_zero(&self, interventions: &Interventions) -> Option<(&str, f64)> {
        let mut numbers =
            self.names.iter().zip(&self.columns).enumerate().filter(|(node, _)| self.categories(*node).is_none());
        numbers.find_map(|(node, (name, column))| {
            let rows = interventions.reference(node, column.len());
            let centre = mean(rows.iter().map(|&row| column[row]));
            let variance = mean(rows.iter().map(|&row| (column[row] - centre).powi(2)));
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
        NodeData::new(names, vec![vec![1.0, 2.0, 6.0], vec![-10.0, 0.0, 40.0]])
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
    fn rows_that_were_set_have_no_part_in_means() {
        let rows = 24;
        // b follows a, which is set to 100 in every other row.
        let a: Vec<f64> = (0..rows).map(|row| if row % 2 == 1 { 100.0 } else { f64::from(row % 4) + 4.0 }).collect();
        let b: Vec<f64> = a.iter().map(|a| 3.0 * a).collect();
        let set = Interventions::new((0..rows).map(|row| row as u64 % 2).collect());
        let names = ["a", "b"].map(String::from).to_vec();
        let mut table = NodeData::new(names, vec![a, b]);
        assert_eq!(table.far_from_zero(&set).map(|(name, _)| name), Some("a"));
        let scales = table.scale_undisturbed(Scaling::Columns, &set);
        assert!((scales[0] - 1.0).abs() < 1e-12 && (scales[1] - 3.0).abs() < 1e-12, "{scales:?}");
        assert_eq!(table.far_from_zero(&set), None);
        // The equation of b has no intercept.
        assert!(table.columns[0].iter().zip(&table.columns[1]).all(|(a, b)| (a - b).abs() < 1e-12));
    }

    #[test]
    fn places_of_categories_stay_what_they_are() {
        let levels = ["a", "b", "c"].map(String::from).to_vec();
        let kinds = vec![NodeKind::Number, NodeKind::Categories { levels, is_ordered: true }];
        let columns = vec![vec![10.0, 20.0, 60.0], vec![2.0, 1.0, 2.0]];
        let mut table = NodeData { names: ["x", "c"].map(String::from).to_vec(), columns, kinds };
        assert_eq!(table.far_from_zero(&Interventions::default()).map(|(name, _)| name), Some("x"));
        let alone = NodeData::new(vec!["x".into()], vec![vec![10.0, 20.0, 60.0]]);
        for scaling in [Scaling::Centre, Scaling::Columns, Scaling::Table] {
            let (mut mixed, mut numbers) = (table.clone(), alone.clone());
            let scales = mixed.scale(scaling);
            assert_eq!(scales, [numbers.scale(scaling)[0], 1.0]);
            assert_eq!((&mixed.columns[0], &mixed.columns[1]), (&numbers.columns[0], &table.columns[1]));
        }
        table.columns.swap(0, 1);
        table.kinds.swap(0, 1);
        assert_eq!(table.far_from_zero(&Interventions::default()).map(|(name, _)| name), Some("c"));
        assert_eq!((table.first_of_categories(), alone.first_of_categories()), (Some("x"), None));
    }

    #[test]
    fn means_far_from_zero_are_found() {
        assert_eq!(table().far_from_zero(&Interventions::default()), Some(("a", 3.0)));
        assert_eq!(scaled(Scaling::Centre).0.far_from_zero(&Interventions::default()), None);
    }
}
