//! Values and gradients of small flows against PyTorch's automatic differentiation.
//!
//! `tests/data/flow_by_pytorch.json` was written by `bench/peer/oracle.py dump`; it holds parameters, inputs, outputs and gradients
//! of the loss `mean(½|θ|² − log-det)` in double precision.

use serde_json::Value;
use vti::device::{Cpu, Device};
use vti::flow::{Batch, ContextShape, Flow, FlowSettings, FlowShape, Passes, Tensor};

fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(values) => values.iter().flat_map(numbers).collect(),
        value => vec![value.as_f64().unwrap()],
    }
}

/// The peer's tensor (or the slice of it) that our tensor stands for.
fn peer_tensor(tensor: &Tensor, tensors: &Value) -> Vec<f64> {
    let parts: Vec<&str> = tensor.name.split('.').collect();
    if parts.last() == Some(&"rho") {
        return [numbers(&tensors["global.shift"]), numbers(&tensors["global.raw_scale"])].concat();
    }
    // Ours counts reversals as layers.
    let layer = parts[1].parse::<usize>().unwrap() / 2;
    if parts[2] == "context" {
        let (index, hidden) = (parts[3].parse::<usize>().unwrap(), tensor.shape[1]);
        let table = &tensors[format!("layers.{layer}.context.table")];
        let rows = table.as_array().unwrap().iter();
        return rows.flat_map(|row| numbers(row)[index * hidden..][..hidden].to_vec()).collect();
    }
    numbers(&tensors[format!("layers.{layer}.{}", parts[2..].join("."))])
}

/// Sets what the masks forbid to zero: the peer keeps numbers there and multiplies them away.
fn apply_mask(tensor: &Tensor, outputs: usize, variables: usize, hidden: usize, values: &mut [f64]) {
    let parts: Vec<&str> = tensor.name.split('.').collect();
    if parts.last() != Some(&"weight") {
        return;
    }
    let degree = |unit: usize| unit * variables / hidden;
    let columns = tensor.shape[1];
    for (place, value) in values.iter_mut().enumerate() {
        let (row, column) = (place / columns, place % columns);
        let allowed = match parts[2] {
            "initial" => column < degree(row),
            "output" => degree(column) <= row / outputs,
            _ => degree(column) <= degree(row),
        };
        *value = if allowed { *value } else { 0.0 };
    }
}

fn close(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() < 1e-9 * (1.0 + expected.abs()), "{what}[{index}]: {found} ≠ {expected}");
    }
}

fn compare(case: &Value, settings: &FlowSettings) {
    let number = |name: &str| case[name].as_u64().unwrap() as usize;
    let (max_dim, hidden, outputs) = (number("d"), number("hidden"), number("outputs"));
    let shape = FlowShape { max_dim, context: ContextShape::Symbols(number("symbol_count")) };
    let flow = Flow::new(settings, shape).unwrap();
    let device = Cpu::<f64>::new(1).unwrap();
    let mut host = vec![0.0; flow.parameter_count()];
    for tensor in flow.tensors() {
        let mut values = peer_tensor(tensor, &case["parameters"]);
        apply_mask(tensor, outputs, max_dim, hidden, &mut values);
        host[tensor.range()].copy_from_slice(&values);
    }
    let mut parameters = device.buffer(host.len()).unwrap();
    device.write(&host, &mut parameters).unwrap();

    let dims: Vec<u32> = numbers(&case["d_m"]).into_iter().map(|d| d as u32).collect();
    let rows = dims.len();
    let mut batch = Batch::new();
    for (&dim, symbol) in dims.iter().zip(numbers(&case["symbols"])) {
        batch.push(&(0..dim).collect::<Vec<_>>(), symbol as u32);
    }
    let z = numbers(&case["z"]);
    let mut work = flow.workspace(&device, rows, Passes::Training).unwrap();
    work.set_batch(&device, &batch).unwrap();
    work.write_z(&device, &z).unwrap();
    flow.forward(&device, &parameters, &mut work).unwrap();
    // Inactive coordinates keep their value, as they do for the peer.
    let (mut theta, mut log_det) = (z.clone(), vec![0.0; rows]);
    work.read_theta(&device, &mut theta, &mut log_det).unwrap();
    close(&theta, &numbers(&case["theta"]), "theta");
    close(&log_det, &numbers(&case["logdet"]), "log-det");

    let d_theta: Vec<f64> = theta.iter().map(|theta| theta / rows as f64).collect();
    work.write_gradients(&device, &d_theta, &vec![-1.0 / rows as f64; rows]).unwrap();
    let mut gradient = device.buffer(host.len()).unwrap();
    flow.backward(&device, &parameters, &mut work, &mut gradient).unwrap();
    device.read(&gradient, &mut host).unwrap();
    for tensor in flow.tensors() {
        close(&host[tensor.range()], &peer_tensor(tensor, &case["gradients"]), &tensor.name);
    }
    let expected = numbers(&case["gradient_z"]);
    let mut found = expected.clone();
    work.read_z_gradient(&device, &mut found).unwrap();
    close(&found, &expected, "dz");
}

#[test]
fn small_flows_agree_with_pytorch() {
    let cases: Value = serde_json::from_str(include_str!("../data/flow_by_pytorch.json")).unwrap();
    compare(&cases["affine"], &FlowSettings::affine(3, 2, 5));
    compare(&cases["spline"], &FlowSettings::spline(3, 2, 5));
}
