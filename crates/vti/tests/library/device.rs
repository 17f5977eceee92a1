//! The device's operations against slow, obvious implementations, for every instruction set and both precisions.

use vti::device::{
    Activation, ContextTable, ContextTableGradient, Cpu, Device, Group, InputGradient, Linear, Output, Part, Placement,
    Reach, Residual, ResidualUnits, RowPlan, Staircase,
};
use vti::random::{Purpose, Stream};
use vti::simd::Instructions;
use vti::simd::Real;

/// A random masked map and random rows, all in double precision.
struct Problem {
    linear: Linear,
    parameters: Vec<f64>,
    dims: Vec<u32>,
    order: Vec<u32>,
    /// Row-major, whole rows.
    x: Vec<f64>,
    dy: Vec<f64>,
}

impl Problem {
    fn new(seed: u64) -> Self {
        let mut stream = Stream::new(seed, Purpose::Other(0), 0, 0);
        let mut below = |n: u64| stream.below(n) as usize;
        let (max_dim, rows) = (1 + below(7), 1 + below(150));
        // Units per degree, on both sides; some degrees have none, some maps no inputs at all.
        let inputs: Vec<usize> = (0..max_dim).map(|_| below(20) * usize::from(!seed.is_multiple_of(11))).collect();
        let outputs: Vec<usize> = (0..max_dim).map(|_| below(30)).collect();
        let ends = |units: &[usize]| -> Vec<u32> {
            let mut end = 0;
            std::iter::once(0)
                .chain(units.iter().map(|n| {
                    end += n;
                    end as u32
                }))
                .collect()
        };
        let (input_ends, output_ends) = (ends(&inputs), ends(&outputs));
        let prefix = (0..max_dim).flat_map(|degree| vec![input_ends[degree + 1]; outputs[degree]]).collect();
        let stairs = Staircase::new(prefix, *input_ends.last().unwrap() as usize);
        let mut len = below(5);
        let linear = Linear::allocate(&mut len, stairs, Reach::new(output_ends), Reach::new(input_ends));
        let dims: Vec<u32> = (0..rows).map(|_| below(max_dim as u64 + 1) as u32).collect();
        let mut order: Vec<u32> = (0..rows as u32).collect();
        order.sort_by_key(|&row| std::cmp::Reverse(dims[row as usize]));
        let mut draw = |n: usize| (0..n).map(|_| f64::from(stream.normal() as f32)).collect::<Vec<f64>>();
        let mut parameters = draw(len);
        let columns = linear.stairs().inputs();
        for output in 0..linear.stairs().outputs() {
            for input in linear.stairs().prefix(output)..columns {
                parameters[linear.weight() + output * columns + input] = 0.0;
            }
        }
        let (x, dy) = (draw(rows * columns), draw(rows * linear.stairs().outputs()));
        Self { linear, parameters, dims, order, x, dy }
    }

    fn weight(&self, output: usize, input: usize) -> f64 {
        self.parameters[self.linear.weight() + output * self.linear.stairs().inputs() + input]
    }

    fn rows<T: Real>(&self, device: &Cpu<T>) -> <Cpu<T> as Device>::Rows
    where
        Cpu<T>: Device<Real = T>,
    {
        let mut rows = device.rows(self.dims.len(), 8).unwrap();
        let zeros = vec![0; self.dims.len()];
        let plan = RowPlan {
            order: &self.order,
            dims: &self.dims,
            contexts: &zeros,
            slots: &zeros,
            active: &[],
            starts: &[],
            needs_active: false,
        };
        device.set_rows(&mut rows, plan).unwrap();
        rows
    }
}

fn convert<T: Real>(values: &[f64]) -> Vec<T> {
    values.iter().map(|&x| T::from_f64(x)).collect()
}

fn load<T: Real>(
    device: &Cpu<T>,
    rows: &<Cpu<T> as Device>::Rows,
    values: &[f64],
    count: usize,
) -> <Cpu<T> as Device>::Matrix
where
    Cpu<T>: Device<Real = T>,
{
    let features = values.len() / count;
    let mut matrix = device.matrix(features, count).unwrap();
    device.import(rows, &convert::<T>(values), Placement::Whole { stride: features, first: 0 }, &mut matrix).unwrap();
    matrix
}

fn close<T: Real>(found: T, truth: f64, scale: f64) -> bool {
    (found.to_f64() - truth).abs() <= 40.0 * T::EPSILON.to_f64() * (1.0 + scale)
}

fn products<T: Real>(problem: &Problem, instructions: Instructions)
where
    Cpu<T>: Device<Real = T>,
{
    let device = Cpu::<T>::single().with_instructions(instructions);
    let (linear, count) = (&problem.linear, problem.dims.len());
    let (inputs, outputs) = (linear.stairs().inputs(), linear.stairs().outputs());
    let rows = problem.rows(&device);
    let mut parameters = device.buffer(problem.parameters.len()).unwrap();
    device.write(&convert::<T>(&problem.parameters), &mut parameters).unwrap();
    let (x, mut dy) = (load(&device, &rows, &problem.x, count), load(&device, &rows, &problem.dy, count));
    // Gradients of units a row does not need are 0, as they are in a flow.
    let needed = |row: usize| linear.outputs().units(problem.dims[row]);
    let mut masked = problem.dy.clone();
    for row in 0..count {
        masked[row * outputs + needed(row)..(row + 1) * outputs].fill(0.0);
    }
    device.import(&rows, &convert::<T>(&masked), Placement::Whole { stride: outputs, first: 0 }, &mut dy).unwrap();

    // y = relu(dy + W x + b), and the same unit by unit.
    let mut whole = load(&device, &rows, &problem.dy, count);
    let mut copy = device.matrix(outputs, count).unwrap();
    let output = Output { to: &mut whole, accumulate: true, activation: Activation::ReluInto(&mut copy) };
    device.product(linear, &parameters, &rows, &x, 0..outputs, output).unwrap();
    let mut parts = load(&device, &rows, &problem.dy, count);
    for unit in 0..outputs {
        let output = Output { to: &mut parts, accumulate: true, activation: Activation::Relu };
        device.product(linear, &parameters, &rows, &x, unit..unit + 1, output).unwrap();
    }
    let read = |matrix: &_, features: usize| {
        let mut values = vec![T::ZERO; count * features];
        device.export(&rows, matrix, Placement::Whole { stride: features, first: 0 }, &mut values).unwrap();
        values
    };
    let (whole, copy, parts) = (read(&whole, outputs), read(&copy, outputs), read(&parts, outputs));
    for row in 0..count {
        for output in 0..needed(row) {
            let terms = || (0..inputs).map(|i| problem.weight(output, i) * problem.x[row * inputs + i]);
            let bias = problem.parameters[linear.bias() + output];
            let truth = terms().sum::<f64>() + bias + problem.dy[row * outputs + output];
            let place = row * outputs + output;
            assert!(close(whole[place], truth, terms().map(f64::abs).sum()), "{} ≠ {truth}", whole[place]);
            assert_eq!(copy[place].to_f64(), whole[place].to_f64().max(0.0));
            assert_eq!(copy[place].to_f64(), parts[place].to_f64(), "unit by unit gives the same bits");
        }
    }

    // dx = (1 + Wᵀ dy where x > 0).
    let mut dx = load(&device, &rows, &vec![1.0; count * inputs], count);
    let output = InputGradient { to: &mut dx, accumulate: true, residual: None, gate: Some(&x) };
    device.product_input_gradient(linear, &parameters, &rows, &dy, 0..inputs, output).unwrap();
    let dx = read(&dx, inputs);
    for row in 0..count {
        for input in 0..linear.inputs().units(problem.dims[row]) {
            let terms = || (0..outputs).map(|o| problem.weight(o, input) * masked[row * outputs + o]);
            let gate = if problem.x[row * inputs + input] > 0.0 { 1.0 } else { 0.0 };
            let found = dx[row * inputs + input];
            assert!(close(found, 1.0 + gate * terms().sum::<f64>(), terms().map(f64::abs).sum()));
        }
    }

    // dW, db. What was in the buffer before does not matter.
    let mut gradient = device.buffer(problem.parameters.len()).unwrap();
    device.write(&vec![T::from_f64(f64::NAN); problem.parameters.len()], &mut gradient).unwrap();
    let mut scratch = device.matrix(device.scratch_features(inputs), count).unwrap();
    device.product_weight_gradient(linear, &rows, &x, &dy, &mut scratch, &mut gradient).unwrap();
    let mut found = vec![T::ZERO; problem.parameters.len()];
    device.read(&gradient, &mut found).unwrap();
    for output in 0..outputs {
        let present = || (0..count).filter(|&row| needed(row) > output);
        let truth: f64 = present().map(|row| masked[row * outputs + output]).sum();
        assert!(close(found[linear.bias() + output], truth, count as f64));
        for input in 0..inputs {
            let terms = || present().map(|row| masked[row * outputs + output] * problem.x[row * inputs + input]);
            let allowed = input < linear.stairs().prefix(output);
            let truth = if allowed { terms().sum() } else { 0.0 };
            let found = found[linear.weight() + output * inputs + input];
            assert!(close(found, truth, terms().map(f64::abs).sum()), "dW[{output}, {input}]: {found} ≠ {truth}");
        }
    }
}

#[test]
fn products_agree_with_triple_loops() {
    for seed in 0..150 {
        let problem = Problem::new(seed);
        for instructions in Instructions::available() {
            products::<f32>(&problem, instructions);
            products::<f64>(&problem, instructions);
        }
    }
}

/// Rows with contexts and active coordinates.
fn lookup_rows(
    device: &Cpu<f64>,
    contexts: &[u32],
    dims: &[u32],
    active: &[u32],
    starts: &[u32],
) -> <Cpu<f64> as Device>::Rows {
    let mut rows = device.rows(dims.len(), 4).unwrap();
    let mut order: Vec<u32> = (0..dims.len() as u32).collect();
    order.sort_by_key(|&row| std::cmp::Reverse(dims[row as usize]));
    let plan = RowPlan { order: &order, dims, contexts, slots: contexts, active, starts, needs_active: true };
    device.set_rows(&mut rows, plan).unwrap();
    rows
}

#[test]
fn gather_and_scatter_are_transposes() {
    let device = Cpu::<f64>::single();
    let mut stream = Stream::new(9, Purpose::Other(0), 0, 0);
    let (count, width, units) = (131, 70, 43);
    let contexts: Vec<u32> = (0..count).map(|_| stream.below(6) as u32).collect();
    let dims: Vec<u32> = (0..count).map(|_| stream.below(2) as u32).collect();
    let rows = lookup_rows(&device, &contexts, &dims, &vec![0; count], &(0..count as u32).collect::<Vec<_>>());
    let table: Vec<f64> = (0..6 * width + 3).map(|_| stream.normal()).collect();
    let mut buffer = device.buffer(table.len()).unwrap();
    device.write(&table, &mut buffer).unwrap();
    let reach = Reach::whole(1, units);
    let mut found = device.matrix(units, count).unwrap();
    device.gather(ContextTable::Parameters { buffer: &buffer, at: 3, width }, &reach, &rows, &mut found).unwrap();
    let mut values = vec![0.0; count * units];
    device.export(&rows, &found, Placement::Whole { stride: units, first: 0 }, &mut values).unwrap();
    // Rows without coordinates have no gradient, as in a flow.
    let weights: Vec<f64> = (0..count * units).map(|i| f64::from(dims[i / units]) * stream.normal()).collect();
    let mut gradient = device.buffer(table.len()).unwrap();
    let mut loaded = device.matrix(units, count).unwrap();
    device.import(&rows, &weights, Placement::Whole { stride: units, first: 0 }, &mut loaded).unwrap();
    let to = ContextTableGradient::Parameters { buffer: &mut gradient, at: 3, contexts: 6, width };
    device.scatter(&loaded, &reach, &rows, to).unwrap();
    let mut scattered = vec![0.0; table.len()];
    device.read(&gradient, &mut scattered).unwrap();

    let mut expected = vec![0.0; table.len()];
    for row in (0..count).filter(|&row| dims[row] == 1) {
        for unit in 0..units {
            let place = 3 + contexts[row] as usize * width + unit;
            assert_eq!(values[row * units + unit], table[place]);
            expected[place] += weights[row * units + unit];
        }
    }
    // The same through a computed table, one column per context.
    let identity: Vec<u32> = (0..6).collect();
    let columns = lookup_rows(&device, &identity, &[1; 6], &[0; 6], &identity);
    let mut computed = device.matrix(width, 6).unwrap();
    device.import(&columns, &table[3..], Placement::Whole { stride: width, first: 0 }, &mut computed).unwrap();
    let mut again = device.matrix(units, count).unwrap();
    device.gather(ContextTable::Computed(&computed), &reach, &rows, &mut again).unwrap();
    let mut through_table = vec![0.0; count * units];
    device.export(&rows, &again, Placement::Whole { stride: units, first: 0 }, &mut through_table).unwrap();
    assert_eq!(values, through_table);
    let mut computed_gradient = device.matrix(width, 6).unwrap();
    device.scatter(&loaded, &reach, &rows, ContextTableGradient::Computed(&mut computed_gradient)).unwrap();
    let mut through_table = vec![0.0; 6 * width];
    device
        .export(&columns, &computed_gradient, Placement::Whole { stride: width, first: 0 }, &mut through_table)
        .unwrap();
    for place in 0..6 * width {
        assert!((through_table[place] - expected[3 + place]).abs() < 1e-12);
        assert!((scattered[3 + place] - expected[3 + place]).abs() < 1e-12);
    }
}

#[test]
fn reversal_is_its_own_inverse_and_leaves_inactive_coordinates() {
    let device = Cpu::<f64>::single();
    let dims: Vec<u32> = (0..70).map(|row| row % 5).collect();
    let zeros = vec![0; 70];
    let starts: Vec<u32> = dims
        .iter()
        .scan(0, |end, dim| {
            *end += dim;
            Some(*end - dim)
        })
        .collect();
    let active: Vec<u32> = dims.iter().flat_map(|&dim| 0..dim).collect();
    let rows = lookup_rows(&device, &zeros, &dims, &active, &starts);
    let values: Vec<f64> = (0..70 * 4).map(f64::from).collect();
    let (mut x, mut y, mut back) =
        (device.matrix(4, 70).unwrap(), device.matrix(4, 70).unwrap(), device.matrix(4, 70).unwrap());
    device.import(&rows, &values, Placement::LeftAligned { stride: 4 }, &mut x).unwrap();
    device.reverse(&rows, &x, &mut y).unwrap();
    device.reverse(&rows, &y, &mut back).unwrap();
    let read = |matrix: &_| {
        let mut found = vec![-1.0; values.len()];
        device.export(&rows, matrix, Placement::LeftAligned { stride: 4 }, &mut found).unwrap();
        found
    };
    let (reversed, back) = (read(&y), read(&back));
    for row in 0..70 {
        let dim = dims[row] as usize;
        for i in 0..4 {
            let place = row * 4 + i;
            assert_eq!(reversed[place], if i < dim { values[row * 4 + dim - 1 - i] } else { -1.0 });
            assert_eq!(back[place], if i < dim { values[place] } else { -1.0 });
        }
    }
}

/// A residual network over `variables` of so many inputs, units and outputs each.
struct Network {
    inputs: Vec<u32>,
    units: Vec<u32>,
    outputs: Vec<u32>,
    initial: Linear,
    blocks: Vec<[Linear; 2]>,
    output: Linear,
    parameters: Vec<f64>,
}

impl Network {
    fn new(stream: &mut Stream, blocks: usize) -> Self {
        let variables = 2 + stream.below(9) as usize;
        let mut ends = |least: u64, most: u64| -> Vec<u32> {
            let mut end = 0;
            let mut next = || {
                end += (least + stream.below(most - least)) as u32;
                end
            };
            std::iter::once(0).chain((0..variables).map(|_| next())).collect()
        };
        // Some variables have no units; some have more than a register block holds.
        let (inputs, units, outputs) = (ends(1, 4), ends(0, 9), ends(1, 8));
        let mut len = 0;
        let mut map = |to: &[u32], from: &[u32], known: usize| {
            let prefix = (0..variables).flat_map(|v| vec![from[v + known]; (to[v + 1] - to[v]) as usize]).collect();
            let stairs = Staircase::new(prefix, from[variables] as usize);
            Linear::allocate(&mut len, stairs, Reach::new(to.to_vec()), Reach::new(from.to_vec()))
        };
        let initial = map(&units, &inputs, 0);
        let blocks = (0..blocks).map(|_| [map(&units, &units, 1), map(&units, &units, 1)]).collect();
        let output = map(&outputs, &units, 1);
        let mut parameters: Vec<f64> = (0..len).map(|_| 0.4 * stream.normal()).collect();
        let mut network = Self { inputs, units, outputs, initial, blocks, output, parameters: Vec::new() };
        for linear in network.blocks.iter().flatten().chain([&network.initial, &network.output]) {
            let (stairs, columns) = (linear.stairs(), linear.stairs().inputs());
            for row in 0..stairs.outputs() {
                parameters[linear.weight() + row * columns..][stairs.prefix(row)..columns].fill(0.0);
            }
        }
        network.parameters = parameters;
        network
    }
}

/// Outputs of a network, whole or variable by variable in groups of `per_group` variables.
fn residual<T: Real>(
    network: &Network,
    instructions: Instructions,
    (dims, seed): (&[u32], u64),
    per_group: Option<usize>,
) -> Vec<u64>
where
    Cpu<T>: Device<Real = T>,
{
    let device = Cpu::<T>::single().with_instructions(instructions);
    let (count, variables) = (dims.len(), network.inputs.len() - 1);
    let last = |ends: &[u32]| ends[variables] as usize;
    let (inputs, units, outputs) = (last(&network.inputs), last(&network.units), last(&network.outputs));
    let (order, zeros): (Vec<u32>, _) = ((0..count as u32).collect(), vec![0; count]);
    let plan =
        RowPlan { order: &order, dims, contexts: &zeros, slots: &zeros, active: &[], starts: &[], needs_active: false };
    let mut rows = device.rows(count, variables).unwrap();
    device.set_rows(&mut rows, plan).unwrap();
    let mut parameters = device.buffer(network.parameters.len()).unwrap();
    device.write(&convert::<T>(&network.parameters), &mut parameters).unwrap();
    let mut stream = Stream::new(seed, Purpose::Other(3), 0, 0);
    let in_context = seed.is_multiple_of(2);
    let x: Vec<f64> = (0..count * inputs).map(|_| stream.normal()).collect();
    // Nothing may be read before it is known: without a context, units start as NaN.
    let mut start = |known: bool| -> Vec<f64> {
        (0..count * units).map(|_| if known { stream.normal() } else { f64::NAN }).collect()
    };
    let blocks = 0..network.blocks.len();
    let mut hidden = load(&device, &rows, &start(in_context), count);
    let mut inner: Vec<_> = blocks.clone().map(|_| load(&device, &rows, &start(in_context), count)).collect();
    let mut activated: Vec<_> = blocks.map(|_| load(&device, &rows, &start(false), count)).collect();
    let mut output = device.matrix(outputs, count).unwrap();
    let range = |ends: &[u32], from: usize, to: usize| ends[from] as usize..ends[to] as usize;
    let group = |variable: usize, size: usize| {
        let (from, to) = (variable / size * size, variables.min((variable / size + 1) * size));
        let (units, outputs) = (range(&network.units, from, to), range(&network.outputs, from, to));
        Group { units, outputs, known_inputs: network.inputs[from] as usize }
    };
    let groups: Vec<_> = per_group.iter().flat_map(|&size| (0..variables).map(move |v| group(v, size))).collect();
    let most = groups.iter().map(|group| group.sums(network.blocks.len())).max();
    let mut sums = device.matrix(most.unwrap_or(0), count).unwrap();
    let net = Residual { initial: &network.initial, blocks: &network.blocks, output: &network.output, in_context };
    let whole = [Part { units: 0..units, outputs: 0..outputs, group: None }];
    let part = |(variable, group)| Part {
        units: range(&network.units, variable, variable + 1),
        outputs: range(&network.outputs, variable, variable + 1),
        group: Some(group),
    };
    let parts: Vec<_> = groups.iter().enumerate().map(part).collect();
    let parts = if parts.is_empty() { &whole[..] } else { &parts };
    for (variable, part) in parts.iter().enumerate() {
        let known = if part.group.is_some() { network.inputs[variable] as usize } else { inputs };
        let x: Vec<f64> = x.iter().enumerate().map(|(i, &x)| if i % inputs < known { x } else { f64::NAN }).collect();
        let (hidden, output) = (&mut hidden, &mut output);
        let input = &load(&device, &rows, &x, count);
        let (activated, inner, sums) = (&mut activated[..], &mut inner[..], &mut sums);
        let values = ResidualUnits { input, hidden, activated, inner, output, sums };
        device.residual(&net, &parameters, &rows, part, values).unwrap();
    }
    let mut found = vec![T::ZERO; count * outputs];
    device.export(&rows, &output, Placement::Whole { stride: outputs, first: 0 }, &mut found).unwrap();
    let needed = found.chunks(outputs).zip(dims).flat_map(|(row, &dim)| &row[..network.outputs[dim as usize] as usize]);
    needed.map(|y| y.to_f64().to_bits()).collect()
}

#[test]
fn residual_networks_give_the_same_bits_whole_and_in_groups() {
    for seed in 0..24 {
        let mut stream = Stream::new(seed, Purpose::Other(2), 0, 0);
        let network = Network::new(&mut stream, (seed % 4) as usize);
        let variables = network.inputs.len() as u64 - 1;
        let mut dims: Vec<u32> = (0..100).map(|_| stream.below(variables + 1) as u32).collect();
        dims.sort_by_key(|&dim| std::cmp::Reverse(dim));
        for instructions in Instructions::available() {
            for size in [1, 2, 5] {
                let double = |per_group| residual::<f64>(&network, instructions, (&dims, seed), per_group);
                assert_eq!(double(None), double(Some(size)), "seed {seed}, {instructions:?}");
                let single = |per_group| residual::<f32>(&network, instructions, (&dims, seed), per_group);
                assert_eq!(single(None), single(Some(size)), "seed {seed}, {instructions:?}");
                assert!(single(None).iter().all(|&bits| f64::from_bits(bits).is_finite()));
            }
        }
    }
}
