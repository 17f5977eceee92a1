//! Every operation of the CPU device against the same one row by row, for random sizes, every instruction set and both
//! precisions. (Products have a test of their own, against triple loops.)

use vti::device::{
    AdamWStep, Choice, ContextTable, ContextTableGradient, Cpu, Device, Entry, Placement, Reach, RowPlan, Scale,
    Spline, Symbols, Transform,
};
use vti::random::{Purpose, Stream};
use vti::simd::{Instructions, Real};
use vti::workers::Workers;

use crate::plain::{Fault, Plain};

/// Random rows with everything that operations are asked about.
struct Sketch {
    seed: u64,
    max_dim: usize,
    contexts_count: usize,
    dims: Vec<u32>,
    order: Vec<u32>,
    contexts: Vec<u32>,
    active: Vec<u32>,
    starts: Vec<u32>,
}

impl Sketch {
    fn new(seed: u64) -> Self {
        let mut stream = Stream::new(seed, Purpose::Other(20), 0, 0);
        let mut below = |n: u64| stream.below(n) as usize;
        // Often around a whole number of tiles; now and then nothing at all.
        let rows = [below(3), 1 + below(40), 60 + below(9), 120 + below(90)][below(4)];
        let (max_dim, contexts_count) = (1 + below(20), 1 + below(9));
        let contexts = (0..rows).map(|_| below(contexts_count as u64) as u32).collect();
        let (mut dims, mut active, mut starts) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rows {
            let start = active.len();
            active.extend((0..max_dim as u32).filter(|_| below(2) == 1));
            starts.push(start as u32);
            dims.push((active.len() - start) as u32);
        }
        let mut order: Vec<u32> = (0..rows as u32).collect();
        order.sort_by_key(|&row| std::cmp::Reverse(dims[row as usize]));
        Self { seed, max_dim, contexts_count, dims, order, contexts, active, starts }
    }

    fn rows(&self) -> usize {
        self.dims.len()
    }

    fn dim(&self, row: usize) -> usize {
        self.dims[row] as usize
    }

    /// Normal numbers that are the same in both precisions.
    fn normals(&self, kind: u64, count: usize) -> Vec<f64> {
        self.scaled(kind, count, 1.0)
    }

    fn scaled(&self, kind: u64, count: usize, scale: f64) -> Vec<f64> {
        let mut stream = Stream::new(self.seed, Purpose::Other(21), kind, 0);
        (0..count).map(|_| f64::from((scale * stream.normal()) as f32)).collect()
    }

    fn below(&self, kind: u64, count: u64) -> usize {
        Stream::new(self.seed, Purpose::Other(22), kind, 0).below(count) as usize
    }
}

/// What operations gave: numbers, and how far single and double precision may be off, relative to numbers beyond 1.
type Outcomes = Vec<(String, Vec<f64>, [f64; 2])>;

/// Nothing is rounded, a few sums are, or a spline is evaluated.
const EXACT: [f64; 2] = [0.0; 2];
const SUMS: [f64; 2] = [2e-6, 1e-14];
const ELEMENTARY: [f64; 2] = [1e-5, 1e-13];
const SPLINES: [f64; 2] = [5e-3, 1e-9];

/// A device with rows to work on.
struct Bench<'a, D: Device> {
    device: &'a D,
    sketch: &'a Sketch,
    rows: D::Rows,
    /// A row for each context.
    columns: D::Rows,
}

fn convert<T: Real>(numbers: &[f64]) -> Vec<T> {
    numbers.iter().map(|&x| T::from_f64(x)).collect()
}

impl<'a, D: Device> Bench<'a, D> {
    fn new(device: &'a D, sketch: &'a Sketch) -> Self {
        let Sketch { dims, order, contexts, active, starts, .. } = sketch;
        let mut rows = device.rows(dims.len(), sketch.max_dim).unwrap();
        let plan = RowPlan { order, dims, contexts, slots: contexts, active, starts, needs_active: true };
        device.set_rows(&mut rows, plan).unwrap();
        let identity: Vec<u32> = (0..sketch.contexts_count as u32).collect();
        let whole = vec![sketch.max_dim as u32; identity.len()];
        let mut columns = device.rows(identity.len(), 0).unwrap();
        let plan = RowPlan {
            order: &identity,
            dims: &whole,
            contexts: &identity,
            slots: &identity,
            active: &[],
            starts: &[],
            needs_active: false,
        };
        device.set_rows(&mut columns, plan).unwrap();
        Self { device, sketch, rows, columns }
    }

    fn load_into(&self, rows: &D::Rows, count: usize, numbers: &[f64], features: usize) -> D::Matrix {
        let mut matrix = self.device.matrix(features, count).unwrap();
        let at = Placement::Whole { stride: features, first: 0 };
        self.device.import(rows, &convert::<D::Real>(numbers), at, &mut matrix).unwrap();
        matrix
    }

    /// A matrix of given numbers, features of each row one after another.
    fn load(&self, numbers: &[f64], features: usize) -> D::Matrix {
        self.load_into(&self.rows, self.sketch.rows(), numbers, features)
    }

    /// A matrix of random numbers.
    fn random(&self, kind: u64, features: usize, scale: f64) -> D::Matrix {
        self.load(&self.sketch.scaled(kind, self.sketch.rows() * features, scale), features)
    }

    fn matrix(&self, features: usize) -> D::Matrix {
        self.device.matrix(features, self.sketch.rows()).unwrap()
    }

    fn read_from(&self, rows: &D::Rows, count: usize, matrix: &D::Matrix, features: usize) -> Vec<f64> {
        let mut numbers = vec![D::Real::ZERO; count * features];
        self.device.export(rows, matrix, Placement::Whole { stride: features, first: 0 }, &mut numbers).unwrap();
        numbers.into_iter().map(|x| x.to_f64()).collect()
    }

    /// Features of all rows.
    fn read(&self, matrix: &D::Matrix, features: usize) -> Vec<f64> {
        self.read_from(&self.rows, self.sketch.rows(), matrix, features)
    }

    /// The first `k` features of every active coordinate within a range: what an operation must have computed.
    fn read_active(&self, matrix: &D::Matrix, k: usize, coordinates: std::ops::Range<usize>) -> Vec<f64> {
        let features = self.sketch.max_dim * k;
        let mut found = Vec::new();
        for (row, numbers) in self.read(matrix, features).chunks(features.max(1)).enumerate() {
            let end = coordinates.end.min(self.sketch.dim(row));
            found.extend_from_slice(&numbers[(coordinates.start.min(end)) * k..end * k]);
        }
        found
    }

    fn buffer(&self, numbers: &[f64]) -> D::Buffer {
        let mut buffer = self.device.buffer(numbers.len()).unwrap();
        self.device.write(&convert::<D::Real>(numbers), &mut buffer).unwrap();
        buffer
    }

    fn read_buffer(&self, buffer: &D::Buffer) -> Vec<f64> {
        let mut numbers = vec![D::Real::ZERO; self.device.len(buffer)];
        self.device.read(buffer, &mut numbers).unwrap();
        numbers.into_iter().map(|x| x.to_f64()).collect()
    }

    /// Moves between host and device, between matrices, and along rows.
    fn moves(&self, found: &mut Outcomes) {
        let Sketch { max_dim, active, starts, .. } = self.sketch;
        let (device, rows, stride) = (self.device, &self.rows, *max_dim);
        let host: Vec<D::Real> = convert(&self.sketch.normals(1, self.sketch.rows() * stride));
        for at in [Placement::LeftAligned { stride }, Placement::Saturated { stride, active, starts }] {
            let (mut x, mut y) = (self.matrix(stride), self.matrix(stride));
            device.import(rows, &host, at, &mut x).unwrap();
            found.push((format!("import {at:?}"), self.read_active(&x, 1, 0..stride), EXACT));
            device.reverse(rows, &x, &mut y).unwrap();
            let mut back = vec![D::Real::from_f64(-7.0); host.len()];
            device.export(rows, &y, at, &mut back).unwrap();
            found.push((format!("reverse, export {at:?}"), back.into_iter().map(Real::to_f64).collect(), EXACT));
        }
        let x = self.random(2, stride, 1.0);
        let (mut copy, mut sum, mut gated) =
            (self.matrix(stride), self.random(3, stride, 1.0), self.random(3, stride, 1.0));
        device.copy(rows, &x, &mut copy).unwrap();
        found.push(("copy".into(), self.read(&copy, stride), EXACT));
        let features = stride / 3..stride;
        device.add_features(rows, features, &x, &mut sum).unwrap();
        found.push(("add_features".into(), self.read(&sum, stride), SUMS));
        device.gate(rows, &x, &mut gated).unwrap();
        found.push(("gate".into(), self.read(&gated, stride), EXACT));
        device.clear(&mut copy).unwrap();
        found.push(("clear".into(), self.read(&copy, stride), EXACT));
    }

    /// Look-ups by context, and by context and coordinate, with their gradients.
    fn look_ups(&self, found: &mut Outcomes) {
        let (device, rows, sketch) = (self.device, &self.rows, self.sketch);
        let (max_dim, contexts) = (sketch.max_dim, sketch.contexts_count);
        // Units by dimension, more than a register holds or fewer.
        let per_dim = sketch.below(1, 12) as u32;
        let reach = Reach::new((0..=max_dim as u32).map(|dim| dim * per_dim).collect());
        let (units, at) = (reach.all(), sketch.below(2, 5));
        let width = units + sketch.below(3, 4);
        let numbers = sketch.normals(4, at + contexts * width);
        let needed = |matrix: &D::Matrix| self.read_active(matrix, per_dim as usize, 0..max_dim);
        // Gradients of units that a row does not need are 0, as they are in a flow.
        let mut weights = sketch.normals(5, sketch.rows() * units);
        for (row, weights) in weights.chunks_mut(units.max(1)).enumerate().take(sketch.rows()) {
            weights[reach.units(sketch.dims[row])..].fill(0.0);
        }
        let (buffer, mut gradient) = (self.buffer(&numbers), self.buffer(&numbers));
        let (mut to, from) = (self.matrix(units), self.load(&weights, units));
        device.gather(ContextTable::Parameters { buffer: &buffer, at, width }, &reach, rows, &mut to).unwrap();
        found.push(("gather".into(), needed(&to), EXACT));
        let table = ContextTableGradient::Parameters { buffer: &mut gradient, at, contexts, width };
        device.scatter(&from, &reach, rows, table).unwrap();
        // What was there before is gone, but for what is not part of the table.
        found.push(("scatter".into(), self.read_buffer(&gradient), SUMS));
        let mut computed = self.load_into(&self.columns, contexts, &numbers[at..], width);
        device.gather(ContextTable::Computed(&computed), &reach, rows, &mut to).unwrap();
        found.push(("gather computed".into(), needed(&to), EXACT));
        device.scatter(&from, &reach, rows, ContextTableGradient::Computed(&mut computed)).unwrap();
        let sums = self.read_from(&self.columns, contexts, &computed, width);
        // Nobody looks at units that no row of a context needs.
        let looked_at = |context: usize| {
            let of_context = (0..sketch.rows()).filter(|&row| sketch.contexts[row] as usize == context);
            of_context.map(|row| reach.units(sketch.dims[row])).max().unwrap_or(0)
        };
        let sums = (0..contexts).flat_map(|context| sums[context * width..][..looked_at(context)].to_vec()).collect();
        found.push(("scatter computed".into(), sums, SUMS));

        let k = 1 + sketch.below(4, 5);
        let features = max_dim * k;
        let mut table = self.load_into(&self.columns, contexts, &sketch.normals(6, contexts * features), features);
        let mut gradients = sketch.normals(7, sketch.rows() * features);
        let rows_of = gradients.chunks_mut(features).enumerate();
        rows_of.for_each(|(row, gradients)| gradients[sketch.dim(row) * k..].fill(0.0));
        let from = self.load(&gradients, features);
        for reversed in [false, true] {
            let mut to = self.matrix(features);
            device.gather_coordinates(&table, k, rows, reversed, &mut to).unwrap();
            found.push((format!("gather_coordinates {reversed}"), self.read_active(&to, k, 0..max_dim), EXACT));
        }
        for reversed in [false, true] {
            device.scatter_coordinates(&from, k, rows, reversed, &mut table).unwrap();
            let sums = self.read_from(&self.columns, contexts, &table, features);
            found.push((format!("scatter_coordinates {reversed}"), sums, SUMS));
        }
        let (same, mut to) = (self.buffer(&sketch.normals(8, at + k)), self.matrix(features));
        device.broadcast(&same, at, k, rows, &mut to).unwrap();
        found.push(("broadcast".into(), self.read_active(&to, k, 0..max_dim), EXACT));
        let mut gradient = self.buffer(&sketch.normals(9, at + k));
        device.broadcast_gradient(&from, at, k, rows, &mut gradient).unwrap();
        found.push(("broadcast_gradient".into(), self.read_buffer(&gradient), [1e-4, 1e-12]));
    }

    /// Both kinds of bijections in all their directions.
    fn transforms(&self, found: &mut Outcomes) {
        let (device, rows, d) = (self.device, &self.rows, self.sketch.max_dim);
        let bins = 1 + self.sketch.below(5, Spline::MAX_BINS as u64);
        let from = self.sketch.below(6, d as u64);
        let part = from..from + 1 + self.sketch.below(7, (d - from) as u64);
        let affine = (Transform::Affine(Scale::default()), ELEMENTARY);
        let spline = (Transform::Spline(Spline { bins, ..Spline::default() }), SPLINES);
        for (transform, tolerance) in [affine, spline] {
            let k = transform.parameters();
            let mut add = |what: &str, numbers| found.push((format!("{what} of {transform:?}"), numbers, tolerance));
            let mut rho = self.random(10, d * k, 0.7);
            let (x, mut y) = (self.random(11, d, 1.5), self.random(11, d, 1.5));
            let mut log_det = self.random(12, 1, 1.0);
            device.transform(&transform, rows, &rho, &x, &mut y, &mut log_det).unwrap();
            add("transform", self.read_active(&y, 1, 0..d));
            add("transform: log-det", self.read(&log_det, 1));

            let (mut back, mut log_det) = (self.random(13, d, 1.5), self.random(12, 1, 1.0));
            device.transform_inverse(&transform, rows, part.clone(), &rho, &x, &mut back, &mut log_det).unwrap();
            add("transform_inverse", self.read_active(&back, 1, part.clone()));
            add("transform_inverse: log-det", self.read(&log_det, 1));

            let (later, mut score, mut by_rho) = (self.random(14, d, 0.5), self.random(15, d, 1.0), self.matrix(d * k));
            let (score_to, rho_to) = (&mut score, &mut by_rho);
            device.transform_score(&transform, rows, part.clone(), &rho, &x, &later, score_to, rho_to).unwrap();
            add("transform_score", self.read_active(&score, 1, part.clone()));
            add("transform_score: dρ", self.read_active(&by_rho, k, part.clone()));

            let (log_det, mut gradient) = (self.random(16, 1, 1.0), self.random(17, d, 1.0));
            device.transform_gradient(&transform, rows, &mut rho, &x, &log_det, &mut gradient).unwrap();
            add("transform_gradient: dx", self.read_active(&gradient, 1, 0..d));
            add("transform_gradient: dρ", self.read_active(&rho, k, 0..d));
        }
    }

    /// Symbols, some of them forbidden: a bit, and a digit.
    fn symbols(&self, found: &mut Outcomes) {
        let (device, rows, count) = (self.device, &self.rows, self.sketch.rows());
        let arity = 3 + self.sketch.below(8, 6);
        let features = 1 + arity;
        let mut stream = Stream::new(self.sketch.seed, Purpose::Other(23), 0, 0);
        let mut logits = self.sketch.scaled(18, count * features, 3.0);
        for logits in logits.chunks_mut(features) {
            // One bit in eight has no choice, and one digit in two may not take one of its values.
            logits[0] = match stream.below(16) {
                0 => f64::INFINITY,
                1 => f64::NEG_INFINITY,
                _ => logits[0],
            };
            let forbidden = 1 + stream.below(2 * arity as u64) as usize;
            logits.get_mut(forbidden).into_iter().for_each(|logit| *logit = f64::NEG_INFINITY);
        }
        let uniforms: Vec<f64> = (0..2 * count).map(|_| f64::from(0.999 * stream.uniform() as f32)).collect();
        let uniforms = self.load(&uniforms, 2);
        let mut words = self.matrix(2);
        let (mut inputs, mut log_prob) = (self.matrix(features), self.random(19, 1, 1.0));
        let entries = [Entry::Scaled { feature: 0, scale: 0.5 }, Entry::OneHot { features: 1..features }];
        let outputs = [0..1, 1..features];
        for (variable, (outputs, entry)) in outputs.iter().cloned().zip(entries).enumerate() {
            let (words, inputs, log_prob) = (&mut words, &mut inputs, &mut log_prob);
            let logits = &self.load(&logits, features);
            let choice = Choice { variable, outputs, logits, uniforms: &uniforms, words, entry, inputs, log_prob };
            device.choose(rows, choice).unwrap();
        }
        found.push(("choose".into(), self.read(&words, 2), EXACT));
        found.push(("choose: inputs".into(), self.read(&inputs, features), EXACT));
        found.push(("choose: log q".into(), self.read(&log_prob, 1), ELEMENTARY));
        let (mut known, weights) = (self.random(19, 1, 1.0), self.random(20, 1, 1.0));
        let mut gradients = self.load(&logits, features);
        for (variable, outputs) in outputs.into_iter().enumerate() {
            let symbols = || Symbols { variable, outputs: outputs.clone(), words: &words };
            device.symbol_log_prob(rows, symbols(), &self.load(&logits, features), &mut known).unwrap();
            device.symbol_gradient(rows, symbols(), &weights, &mut gradients).unwrap();
        }
        found.push(("symbol_log_prob".into(), self.read(&known, 1), ELEMENTARY));
        found.push(("symbol_gradient".into(), self.read(&gradients, features), ELEMENTARY));
    }

    /// Passes over all parameters.
    fn updates(&self, found: &mut Outcomes) {
        let (device, sketch) = (self.device, self.sketch);
        // Now and then so many that they are shared out.
        let len = if sketch.seed.is_multiple_of(8) { 40_000 + sketch.below(9, 99) } else { sketch.below(9, 200) };
        let gradient = self.buffer(&sketch.normals(21, len));
        let mut sum = self.buffer(&sketch.normals(22, len));
        device.combine(0.3, &gradient, -1.5, &mut sum).unwrap();
        found.push(("combine".into(), self.read_buffer(&sum), SUMS));
        let mut nothing = self.buffer(&vec![f64::NAN; len]);
        device.combine(0.3, &gradient, 0.0, &mut nothing).unwrap();
        found.push(("combine over what does not matter".into(), self.read_buffer(&nothing), SUMS));
        let mut record = device.record().unwrap();
        device.norm(&gradient, &mut record).unwrap();
        found.push(("norm".into(), vec![device.read_record(&record).unwrap().norm], ELEMENTARY));
        let mut parameters = self.buffer(&sketch.normals(23, len));
        device.descend(0.1, 2.0, &gradient, &mut parameters, &mut record).unwrap();
        found.push(("descend".into(), self.read_buffer(&parameters), ELEMENTARY));
        let (mut first, mut second) = (device.buffer(len).unwrap(), device.buffer(len).unwrap());
        let mut record = device.record().unwrap();
        let step = AdamWStep { rate: 0.1, beta1: 0.9, beta2: 0.99, epsilon: 1e-8, weight_decay: 0.1, clip_norm: 5.0 };
        for kind in 24..27 {
            let gradient = self.buffer(&sketch.normals(kind, len));
            device.adamw(&step, &gradient, (&mut first, &mut second), &mut parameters, &mut record).unwrap();
        }
        let mut bad = sketch.normals(24, len);
        bad.iter_mut().take(1).for_each(|x| *x = f64::NAN);
        let bad = self.buffer(&bad);
        device.adamw(&step, &bad, (&mut first, &mut second), &mut parameters, &mut record).unwrap();
        found.push(("adamw".into(), self.read_buffer(&parameters), [1e-4, 1e-12]));
        found.push(("adamw: second moments".into(), self.read_buffer(&second), ELEMENTARY));
        let seen = device.read_record(&record).unwrap();
        let failed = f64::from(u8::from(len > 0));
        assert_eq!((f64::from(seen.updates), f64::from(seen.failures)), (4.0 - failed, failed));
    }
}

fn outcomes<D: Device>(device: &D, sketch: &Sketch) -> Outcomes {
    let (bench, mut found) = (Bench::new(device, sketch), Vec::new());
    bench.moves(&mut found);
    bench.look_ups(&mut found);
    bench.transforms(&mut found);
    bench.symbols(&mut found);
    bench.updates(&mut found);
    found
}

/// Compares all operations in one precision with the plain ones.
fn compare<T: Real>(sketch: &Sketch, truth: &Outcomes, single: bool)
where
    Cpu<T>: Device<Real = T>,
{
    for instructions in Instructions::available() {
        let device = Cpu::<T>::single().with_instructions(instructions);
        for ((name, found, _), (_, truth, tolerance)) in outcomes(&device, sketch).iter().zip(truth) {
            assert_eq!(found.len(), truth.len(), "{name}");
            let allowed = tolerance[usize::from(!single)];
            for (place, (&found, &truth)) in found.iter().zip(truth).enumerate() {
                let same = found == truth || (found - truth).abs() <= allowed * (1.0 + truth.abs());
                let what = format!("{name}, {} {instructions:?}, seed {}, place {place}", T::NAME, sketch.seed);
                assert!(same, "{what}: {found} ≠ {truth}");
            }
        }
    }
}

#[test]
fn operations_agree_with_the_plain_ones() {
    for seed in 0..30 {
        let sketch = Sketch::new(seed);
        let truth = outcomes(&Plain::new(Workers::SINGLE, Fault::Nothing), &sketch);
        compare::<f32>(&sketch, &truth, true);
        compare::<f64>(&sketch, &truth, false);
    }
}
