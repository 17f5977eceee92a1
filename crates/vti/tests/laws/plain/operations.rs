//! Every operation, row by row.

use std::ops::Range;

use vti::device::{
    Activation, AdamWStep, Choice, ContextTable, ContextTableGradient, Device, DeviceError, Entry, InputGradient,
    Linear, Output, Placement, Reach, RowPlan, Symbols, Transform, UpdateRecord,
};
use vti::workers::Workers;

use super::memory::{Matrix, Rows, host_place, inactive_places};
use super::transforms::{Derivatives, evaluate, invert};
use super::{Fault, Plain, symbols, updates};

/// What an operation comes to.
type Done = Result<(), DeviceError>;

impl Device for Plain {
    type Real = f64;
    type Buffer = Vec<f64>;
    type Matrix = Matrix;
    type Rows = Rows;
    type Record = UpdateRecord;

    fn workers(&self) -> &Workers {
        &self.workers
    }

    fn buffer(&self, len: usize) -> Result<Vec<f64>, DeviceError> {
        self.begin("buffer")?;
        Ok(vec![0.0; len])
    }
    fn len(&self, buffer: &Vec<f64>) -> usize {
        buffer.len()
    }
    fn write(&self, from: &[f64], to: &mut Vec<f64>) -> Done {
        self.begin("write")?;
        DeviceError::check_len("what is copied", from.len(), to.len())?;
        to.copy_from_slice(from);
        Ok(())
    }
    fn read(&self, from: &Vec<f64>, to: &mut [f64]) -> Done {
        self.begin("read")?;
        DeviceError::check_len("what is copied", from.len(), to.len())?;
        to.copy_from_slice(from);
        Ok(())
    }
    fn matrix(&self, features: usize, rows: usize) -> Result<Matrix, DeviceError> {
        self.begin("matrix")?;
        Ok(Matrix { features, rows: vec![vec![0.0; features]; rows] })
    }
    fn rows(&self, _: usize, _: usize) -> Result<Rows, DeviceError> {
        self.begin("rows")?;
        Ok(Rows::default())
    }
    fn set_rows(&self, rows: &mut Rows, plan: RowPlan<'_>) -> Done {
        self.begin("set_rows")?;
        *rows = Rows::new(plan);
        Ok(())
    }
    fn import(&self, rows: &Rows, from: &[f64], at: Placement<'_>, to: &mut Matrix) -> Done {
        self.begin("import")?;
        for row in rows.all() {
            for i in 0..to.features {
                let place = host_place(at, rows.order[row], i, rows.dims[row] as usize);
                let outside = matches!(at, Placement::Whole { .. });
                to.rows[row][i] = place.map_or(if outside { to.rows[row][i] } else { 0.0 }, |place| from[place]);
            }
        }
        Ok(())
    }
    fn export(&self, rows: &Rows, from: &Matrix, at: Placement<'_>, to: &mut [f64]) -> Done {
        self.begin("export")?;
        for row in rows.all() {
            for i in 0..from.features {
                if let Some(place) = host_place(at, rows.order[row], i, rows.dims[row] as usize) {
                    to[place] = from.rows[row][i];
                }
            }
            if self.fault == Fault::Inactive {
                let inactive = inactive_places(at, rows.order[row], rows.dims[row] as usize);
                inactive.first().into_iter().for_each(|&place| to[place] = 0.0);
            }
        }
        Ok(())
    }
    fn clear(&self, matrix: &mut Matrix) -> Done {
        self.begin("clear")?;
        matrix.rows.iter_mut().for_each(|row| row.fill(0.0));
        Ok(())
    }
    fn copy(&self, rows: &Rows, from: &Matrix, to: &mut Matrix) -> Done {
        self.begin("copy")?;
        rows.all().for_each(|row| to.rows[row].copy_from_slice(&from.rows[row]));
        Ok(())
    }

    fn product(
        &self,
        linear: &Linear,
        parameters: &Vec<f64>,
        rows: &Rows,
        input: &Matrix,
        units: Range<usize>,
        output: Output<'_, Matrix>,
    ) -> Done {
        self.begin("product")?;
        let Output { to, accumulate, mut activation } = output;
        for row in rows.all() {
            for unit in units.start..units.end.min(linear.outputs().units(rows.dims[row])) {
                let weights = &parameters[linear.weight() + unit * linear.stairs().inputs()..];
                let terms = weights.iter().zip(&input.rows[row]).take(linear.stairs().prefix(unit));
                let before = if accumulate { to.rows[row][unit] } else { 0.0 };
                let sum = before + parameters[linear.bias() + unit] + terms.map(|(w, x)| w * x).sum::<f64>();
                to.rows[row][unit] = if let Activation::Relu = activation { sum.max(0.0) } else { sum };
                if let Activation::ReluInto(copy) = &mut activation {
                    copy.rows[row][unit] = sum.max(0.0);
                }
            }
        }
        Ok(())
    }
    fn product_input_gradient(
        &self,
        linear: &Linear,
        parameters: &Vec<f64>,
        rows: &Rows,
        gradient: &Matrix,
        units: Range<usize>,
        output: InputGradient<'_, Matrix>,
    ) -> Done {
        self.begin("product_input_gradient")?;
        let InputGradient { to, accumulate, residual, gate } = output;
        for row in rows.all() {
            for input in units.start..units.end.min(linear.inputs().units(rows.dims[row])) {
                let readers = linear.stairs().first(input)..linear.outputs().units(rows.dims[row]);
                let weight = |unit: usize| parameters[linear.weight() + unit * linear.stairs().inputs() + input];
                let sum: f64 = readers.map(|unit| weight(unit) * gradient.rows[row][unit]).sum();
                let open = gate.is_none_or(|gate| gate.rows[row][input] > 0.0);
                let before = if accumulate { to.rows[row][input] } else { 0.0 };
                let before = before + residual.map_or(0.0, |residual| residual.rows[row][input]);
                to.rows[row][input] = before + if open { sum } else { 0.0 };
            }
        }
        Ok(())
    }
    fn product_weight_gradient(
        &self,
        linear: &Linear,
        rows: &Rows,
        input: &Matrix,
        gradient: &Matrix,
        _: &mut Matrix,
        to: &mut Vec<f64>,
    ) -> Done {
        self.begin("product_weight_gradient")?;
        let inputs = linear.stairs().inputs();
        for unit in 0..linear.stairs().outputs() {
            let present = || rows.all().filter(|&row| linear.outputs().units(rows.dims[row]) > unit);
            to[linear.bias() + unit] = present().map(|row| gradient.rows[row][unit]).sum();
            for i in 0..inputs {
                let terms = present().map(|row| gradient.rows[row][unit] * input.rows[row][i]);
                let read = i < linear.stairs().prefix(unit);
                to[linear.weight() + unit * inputs + i] = if read { terms.sum() } else { 0.0 };
            }
        }
        Ok(())
    }
    fn gate(&self, rows: &Rows, by: &Matrix, to: &mut Matrix) -> Done {
        self.begin("gate")?;
        for row in rows.all() {
            for (to, &by) in to.rows[row].iter_mut().zip(&by.rows[row]) {
                *to = if by > 0.0 { *to } else { 0.0 };
            }
        }
        Ok(())
    }
    fn scratch_features(&self, _: usize) -> usize {
        0
    }

    fn gather(&self, table: ContextTable<'_, Self>, reach: &Reach, rows: &Rows, to: &mut Matrix) -> Done {
        self.begin("gather")?;
        for row in rows.all() {
            for unit in 0..reach.units(rows.dims[row]) {
                to.rows[row][unit] = match &table {
                    ContextTable::Parameters { buffer, at, width } => buffer[at + rows.contexts[row] * width + unit],
                    ContextTable::Computed(matrix) => matrix.rows[rows.slots[row]][unit],
                };
            }
        }
        Ok(())
    }
    fn scatter(&self, from: &Matrix, reach: &Reach, rows: &Rows, mut table: ContextTableGradient<'_, Self>) -> Done {
        self.begin("scatter")?;
        match &mut table {
            ContextTableGradient::Parameters { buffer, at, contexts, width } => {
                buffer[*at..][..*contexts * *width].fill(0.0);
            }
            ContextTableGradient::Computed(matrix) => self.clear(matrix)?,
        }
        for row in rows.all() {
            for unit in 0..reach.units(rows.dims[row]) {
                *match &mut table {
                    ContextTableGradient::Parameters { buffer, at, width, .. } => {
                        &mut buffer[*at + rows.contexts[row] * *width + unit]
                    }
                    ContextTableGradient::Computed(matrix) => &mut matrix.rows[rows.slots[row]][unit],
                } += from.rows[row][unit];
            }
        }
        Ok(())
    }
    fn gather_coordinates(&self, table: &Matrix, k: usize, rows: &Rows, reversed: bool, to: &mut Matrix) -> Done {
        self.begin("gather_coordinates")?;
        for row in rows.all() {
            for feature in 0..rows.active[row].len() * k {
                let source = rows.coordinate(row, feature / k, reversed) * k + feature % k;
                to.rows[row][feature] = table.rows[rows.slots[row]][source];
            }
        }
        Ok(())
    }
    fn scatter_coordinates(&self, from: &Matrix, k: usize, rows: &Rows, reversed: bool, table: &mut Matrix) -> Done {
        self.begin("scatter_coordinates")?;
        self.clear(table)?;
        for row in rows.all() {
            for feature in 0..rows.active[row].len() * k {
                let source = rows.coordinate(row, feature / k, reversed) * k + feature % k;
                table.rows[rows.slots[row]][source] += from.rows[row][feature];
            }
        }
        Ok(())
    }

    fn reverse(&self, rows: &Rows, from: &Matrix, to: &mut Matrix) -> Done {
        self.begin("reverse")?;
        for row in rows.all() {
            to.rows[row].copy_from_slice(&from.rows[row]);
            to.rows[row][..rows.dims[row] as usize].reverse();
        }
        Ok(())
    }
    fn transform(
        &self,
        transform: &Transform,
        rows: &Rows,
        rho: &Matrix,
        x: &Matrix,
        y: &mut Matrix,
        log_det: &mut Matrix,
    ) -> Done {
        self.begin("transform")?;
        let k = transform.parameters();
        for row in rows.all() {
            y.rows[row].copy_from_slice(&x.rows[row]);
            for i in 0..rows.dims[row] as usize {
                let (value, slope) = evaluate(transform, &rho.rows[row][i * k..][..k], x.rows[row][i]);
                y.rows[row][i] = value;
                log_det.rows[row][0] += slope;
            }
        }
        Ok(())
    }
    fn transform_gradient(
        &self,
        transform: &Transform,
        rows: &Rows,
        rho: &mut Matrix,
        x: &Matrix,
        log_det_gradient: &Matrix,
        gradient: &mut Matrix,
    ) -> Done {
        self.begin("transform_gradient")?;
        let k = transform.parameters();
        for row in rows.all() {
            let dim = rows.dims[row] as usize;
            for i in 0..dim {
                let found = Derivatives::new(transform, &rho.rows[row][i * k..][..k], x.rows[row][i]);
                let weights = [gradient.rows[row][i], log_det_gradient.rows[row][0]];
                let weigh = |[value, log_slope]: [f64; 2]| weights[0] * value + weights[1] * log_slope;
                gradient.rows[row][i] = weigh(found.by_x);
                rho.rows[row][i * k..][..k].iter_mut().zip(found.by_rho).for_each(|(to, by)| *to = weigh(by));
            }
            rho.rows[row][dim * k..].fill(0.0);
        }
        Ok(())
    }
    fn transform_inverse(
        &self,
        transform: &Transform,
        rows: &Rows,
        coordinates: Range<usize>,
        rho: &Matrix,
        y: &Matrix,
        x: &mut Matrix,
        log_det: &mut Matrix,
    ) -> Done {
        self.begin("transform_inverse")?;
        let k = transform.parameters();
        for row in rows.all() {
            for i in coordinates.start..coordinates.end.min(rows.dims[row] as usize) {
                let own = &rho.rows[row][i * k..][..k];
                x.rows[row][i] = invert(transform, own, y.rows[row][i]);
                log_det.rows[row][0] += evaluate(transform, own, x.rows[row][i]).1;
            }
        }
        Ok(())
    }
    fn transform_score(
        &self,
        transform: &Transform,
        rows: &Rows,
        coordinates: Range<usize>,
        rho: &Matrix,
        x: &Matrix,
        later: &Matrix,
        score: &mut Matrix,
        rho_gradient: &mut Matrix,
    ) -> Done {
        self.begin("transform_score")?;
        let k = transform.parameters();
        for row in rows.all() {
            rho_gradient.rows[row][coordinates.start * k..coordinates.end * k].fill(0.0);
            for i in coordinates.start..coordinates.end.min(rows.dims[row] as usize) {
                let (own, x) = (&rho.rows[row][i * k..][..k], x.rows[row][i]);
                let slope = evaluate(transform, own, x).1.exp();
                let found = Derivatives::new(transform, own, x);
                let carried = (score.rows[row][i] - later.rows[row][i] - found.by_x[1]) / slope;
                score.rows[row][i] = carried;
                let to = &mut rho_gradient.rows[row][i * k..][..k];
                to.iter_mut().zip(found.by_rho).for_each(|(to, [value, log_slope])| *to = carried * value + log_slope);
            }
        }
        Ok(())
    }
    fn broadcast(&self, parameters: &Vec<f64>, at: usize, k: usize, rows: &Rows, to: &mut Matrix) -> Done {
        self.begin("broadcast")?;
        for row in rows.all() {
            to.rows[row].iter_mut().enumerate().for_each(|(feature, value)| *value = parameters[at + feature % k]);
        }
        Ok(())
    }
    fn broadcast_gradient(&self, from: &Matrix, at: usize, k: usize, rows: &Rows, to: &mut Vec<f64>) -> Done {
        self.begin("broadcast_gradient")?;
        to[at..at + k].fill(0.0);
        for row in rows.all() {
            for feature in 0..rows.dims[row] as usize * k {
                to[at + feature % k] += from.rows[row][feature];
            }
        }
        Ok(())
    }

    fn choose(&self, rows: &Rows, choice: Choice<'_, Matrix>) -> Done {
        self.begin("choose")?;
        let Choice { variable, outputs, logits, uniforms, words, entry, inputs, log_prob } = choice;
        for row in rows.all() {
            let log_probabilities = symbols::log_probabilities(&logits.rows[row][outputs.clone()]);
            let symbol = symbols::choose(&log_probabilities, uniforms.rows[row][variable]);
            words.rows[row][variable] = symbol as f64;
            log_prob.rows[row][0] += log_probabilities[symbol];
            let inputs = &mut inputs.rows[row];
            match &entry {
                Entry::Scaled { feature, scale } => inputs[*feature] = symbol as f64 * scale,
                Entry::OneHot { features } => {
                    inputs[features.clone()].fill(0.0);
                    inputs[features.start + symbol] = 1.0;
                }
            }
        }
        Ok(())
    }
    fn symbol_log_prob(
        &self,
        rows: &Rows,
        symbols: Symbols<'_, Matrix>,
        logits: &Matrix,
        log_prob: &mut Matrix,
    ) -> Done {
        self.begin("symbol_log_prob")?;
        let Symbols { variable, outputs, words } = symbols;
        for row in rows.all() {
            let log_probabilities = symbols::log_probabilities(&logits.rows[row][outputs.clone()]);
            log_prob.rows[row][0] += log_probabilities[words.rows[row][variable] as usize];
        }
        Ok(())
    }
    fn symbol_gradient(
        &self,
        rows: &Rows,
        symbols: Symbols<'_, Matrix>,
        weights: &Matrix,
        logits: &mut Matrix,
    ) -> Done {
        self.begin("symbol_gradient")?;
        let Symbols { variable, outputs, words } = symbols;
        for row in rows.all() {
            let logits = &mut logits.rows[row][outputs.clone()];
            let gradient = symbols::gradient(logits, words.rows[row][variable] as usize);
            logits.iter_mut().zip(gradient).for_each(|(to, by)| *to = weights.rows[row][0] * by);
        }
        Ok(())
    }
    fn add_features(&self, rows: &Rows, features: Range<usize>, from: &Matrix, to: &mut Matrix) -> Done {
        self.begin("add_features")?;
        for row in rows.all() {
            features.clone().for_each(|feature| to.rows[row][feature] += from.rows[row][feature]);
        }
        Ok(())
    }

    fn combine(&self, factor: f64, from: &Vec<f64>, keep: f64, to: &mut Vec<f64>) -> Done {
        self.begin("combine")?;
        to.iter_mut().zip(from).for_each(|(to, from)| {
            *to = if keep == 0.0 { factor * from } else { factor * from + keep * *to };
        });
        Ok(())
    }
    fn record(&self) -> Result<UpdateRecord, DeviceError> {
        self.begin("record")?;
        Ok(UpdateRecord::default())
    }
    fn read_record(&self, record: &UpdateRecord) -> Result<UpdateRecord, DeviceError> {
        self.begin("read_record")?;
        Ok(*record)
    }
    fn write_record(&self, from: &UpdateRecord, to: &mut UpdateRecord) -> Done {
        self.begin("write_record")?;
        *to = *from;
        Ok(())
    }
    fn norm(&self, buffer: &Vec<f64>, record: &mut UpdateRecord) -> Done {
        self.begin("norm")?;
        record.norm = updates::norm(buffer);
        Ok(())
    }
    fn adamw(
        &self,
        step: &AdamWStep,
        gradient: &Vec<f64>,
        (first, second): (&mut Vec<f64>, &mut Vec<f64>),
        parameters: &mut Vec<f64>,
        record: &mut UpdateRecord,
    ) -> Done {
        self.begin("adamw")?;
        updates::adamw(step, gradient, (first, second), parameters, record);
        Ok(())
    }
    fn descend(
        &self,
        rate: f64,
        clip_norm: f64,
        gradient: &Vec<f64>,
        parameters: &mut Vec<f64>,
        record: &mut UpdateRecord,
    ) -> Done {
        self.begin("descend")?;
        updates::descend(rate, clip_norm, gradient, parameters, record);
        Ok(())
    }

    /// Small shards: several in every batch.
    fn shard_rows(&self, _: usize, _: usize) -> usize {
        4
    }
}
