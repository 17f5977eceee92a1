//! What is assumed, and what parameters are called.

use super::inputs::Inputs;
use super::{Dag, DagSettings, GraphPrior, NodeKind, Noise, Score, Sem};

impl Dag {
    /// The prior of weights and noise, and of graphs.
    pub fn prior_in_words(&self) -> String {
        let DagSettings { sem, noise, weight_scale, score, prior, edge_penalty, .. } = &self.settings;
        let weights = match (sem, score) {
            (_, Score::Bge { mean_rows, degrees }) => format!(
                "normal-Wishart for all nodes together (BGe: means count as {mean_rows} rows, {degrees} degrees of freedom beyond the \
                 number of nodes), which does not tell Markov equivalent graphs apart"
            ),
            (Sem::Linear {}, _) => format!("weights ~ N(0, {weight_scale}²)"),
            (Sem::Mlp { .. }, _) => format!("weights of hidden units ~ N(0, {weight_scale}²)"),
        };
        let noise = match (noise, score) {
            (_, Score::Bge { .. }) => String::new(),
            (Noise::Known { sigma }, _) => format!(", σ = {sigma}"),
            (Noise::Unknown {}, _) => ", log σ ~ N(0, 1) for each node".into(),
        };
        let categories = match self.table().first_of_categories() {
            Some(_) => "; where nothing causes them, all probabilities of categories are equally likely",
            None => "",
        };
        let graphs = match prior {
            GraphPrior::Orders => "orders with edges along them",
            GraphPrior::Graphs => "graphs",
        };
        let penalty = if *edge_penalty == 0.0 {
            String::new()
        } else {
            format!(", each edge e^−{edge_penalty} times less probable")
        };
        format!("{weights}{noise}{categories}; all {graphs} equally probable{penalty}")
    }

    /// Of a list with an item for each parameter, those of parameters that some graph has.
    pub(crate) fn in_use<T>(&self, list: Vec<T>) -> Vec<T> {
        let width = self.space.node_width().max(1);
        let is_used = |place: usize| place % width < self.space.used_width(place / width);
        list.into_iter().enumerate().filter(|(place, _)| is_used(*place)).map(|(_, item)| item).collect()
    }

    /// Names of all natural parameters, node by node. Where nodes differ in how many they may have, some belong to no graph.
    pub(super) fn names_of_parameters(&self) -> Vec<String> {
        let nodes = self.space.nodes();
        let mut found = Vec::with_capacity(nodes * self.space.node_width());
        for node in 0..nodes {
            self.add_names(node, &self.inputs, &mut found);
            let unused = self.space.node_width() - self.space.used_width(node);
            found.extend((1..=unused).map(|number| format!("unused.{}.{number}", self.table().names[node])));
        }
        found
    }

    fn add_names(&self, node: usize, inputs: &Inputs, found: &mut Vec<String>) {
        let name = &self.table().names[node];
        let outputs = match self.table().kind(node) {
            NodeKind::Number => {
                found.extend(self.settings.noise.sigma().is_none().then(|| format!("sigma.{name}")));
                vec![name.clone()]
            }
            NodeKind::Categories { levels, is_ordered } if *is_ordered && levels.len() > 2 => {
                let between = |place: usize| format!("{name}.{}|{}", levels[place], levels[place + 1]);
                found.push(format!("cut.{}", between(0)));
                found.extend((1..levels.len() - 1).map(|place| format!("gap.{}", between(place))));
                vec![name.clone()]
            }
            NodeKind::Categories { levels, .. } if levels.len() == 2 => {
                found.push(format!("intercept.{name}"));
                vec![name.clone()]
            }
            NodeKind::Categories { levels, .. } => {
                let outputs: Vec<String> = levels[1..].iter().map(|level| format!("{name}={level}")).collect();
                found.extend(outputs.iter().map(|output| format!("intercept.{output}")));
                outputs
            }
        };
        let columns = &inputs.table(self.table()).names;
        let others = (0..self.space.nodes()).filter(|&from| from != node);
        let froms = others.flat_map(|from| inputs.columns(from)).map(|column| &columns[column]);
        match self.settings.sem {
            Sem::Linear {} => found.extend(froms.flat_map(|from| outputs.iter().map(move |to| format!("{from}→{to}")))),
            Sem::Mlp { hidden, bias } => {
                let units = || 1..=hidden;
                found.extend(units().filter(|_| bias).map(|unit| format!("b1.{name}.{unit}")));
                found.extend(outputs.iter().flat_map(|to| units().map(move |unit| format!("w2.{to}.{unit}"))));
                found.extend(outputs.iter().filter(|_| bias).map(|to| format!("b2.{to}")));
                found.extend(froms.flat_map(|from| units().map(move |unit| format!("w1.{from}→{name}.{unit}"))));
            }
        }
    }
}
