//! The operations of the CPU device.

use std::ops::Range;

use super::memory::{CpuMatrix, CpuRows};
use super::{Cpu, TILE, lookup, optimiser, product, residual, transform, weights, words};
use crate::device::{
    AdamWStep, Choice, ContextTable, ContextTableGradient, Device, DeviceError, InputGradient, Linear, Output, Part,
    Placement, Reach, Residual, ResidualUnits, RowPlan, Symbols, Transform, UpdateRecord,
};
use crate::simd::{AlignedVec, Real};
use crate::workers::Workers;

/// One implementation for each precision, rather than one that is generic: the kernels behind it are then compiled with this
/// crate, once, and not again with every program that uses it.
macro_rules! device {
    ($module:ident, $real:ty) => {
        mod $module {
            use super::*;

            type T = $real;
            type Buffer = AlignedVec<T>;
            type Matrix = CpuMatrix<T>;
            type Done = Result<(), DeviceError>;

            impl Device for Cpu<T> {
                type Real = T;
                type Buffer = Buffer;
                type Matrix = Matrix;
                type Rows = CpuRows;
                type Record = UpdateRecord;

                fn workers(&self) -> &Workers {
                    &self.workers
                }

                fn buffer(&self, len: usize) -> Result<Buffer, DeviceError> {
                    Ok(AlignedVec::zeros(len))
                }

                fn write(&self, from: &[T], to: &mut Buffer) -> Done {
                    DeviceError::check_len("what is copied", from.len(), to.len())?;
                    to.copy_from_slice(from);
                    Ok(())
                }

                fn read(&self, from: &Buffer, to: &mut [T]) -> Done {
                    DeviceError::check_len("what is copied", from.len(), to.len())?;
                    to.copy_from_slice(from);
                    Ok(())
                }

                fn matrix(&self, features: usize, rows: usize) -> Result<Matrix, DeviceError> {
                    Ok(CpuMatrix::zeros(features, rows))
                }

                fn rows(&self, capacity: usize, max_dim: usize) -> Result<CpuRows, DeviceError> {
                    Ok(CpuRows::new(capacity, max_dim))
                }

                fn set_rows(&self, rows: &mut CpuRows, plan: RowPlan<'_>) -> Done {
                    rows.set(plan);
                    Ok(())
                }

                fn import(&self, rows: &CpuRows, from: &[T], at: Placement<'_>, to: &mut Matrix) -> Done {
                    self.each_tile(rows, to, 4 * TILE * to.features, |tile, to| {
                        lookup::import(rows, tile, from, at, to)
                    });
                    Ok(())
                }

                fn export(&self, rows: &CpuRows, from: &Matrix, at: Placement<'_>, to: &mut [T]) -> Done {
                    lookup::export(rows, from, at, to);
                    Ok(())
                }

                fn clear(&self, matrix: &mut Matrix) -> Done {
                    matrix.data.fill(T::ZERO);
                    Ok(())
                }

                fn copy(&self, rows: &CpuRows, from: &Matrix, to: &mut Matrix) -> Done {
                    let len = rows.tiles() * from.features * TILE;
                    to.data[..len].copy_from_slice(&from.data[..len]);
                    Ok(())
                }

                fn product(
                    &self,
                    linear: &Linear,
                    parameters: &Buffer,
                    rows: &CpuRows,
                    input: &Matrix,
                    units: Range<usize>,
                    output: Output<'_, Matrix>,
                ) -> Done {
                    product::forward(self, linear, parameters, rows, input, units, output);
                    Ok(())
                }

                fn residual(
                    &self,
                    net: &Residual<'_>,
                    parameters: &Buffer,
                    rows: &CpuRows,
                    part: &Part<'_>,
                    values: ResidualUnits<'_, Matrix>,
                ) -> Done {
                    // Several tiles are shared out among the threads product by product.
                    match part.group {
                        Some(group) if rows.tiles() == 1 || self.workers.threads() == 1 => {
                            residual::part(self, net, parameters, rows, (part, group), values);
                        }
                        _ => net.by_products(self, parameters, rows, part, values)?,
                    }
                    Ok(())
                }

                fn product_input_gradient(
                    &self,
                    linear: &Linear,
                    parameters: &Buffer,
                    rows: &CpuRows,
                    gradient: &Matrix,
                    units: Range<usize>,
                    output: InputGradient<'_, Matrix>,
                ) -> Done {
                    let InputGradient { to, accumulate, residual, gate } = output;
                    let cost = TILE * linear.stairs.nonzeros() * units.len() / linear.stairs.inputs().max(1);
                    self.each_tile(rows, to, cost, |tile, to| {
                        let dim = rows.tile_dim(tile);
                        self.run(product::InputGradient {
                            linear,
                            parameters,
                            outputs: linear.outputs.units(dim),
                            inputs: units.start..units.end.min(linear.inputs.units(dim)),
                            gradient: gradient.tile(tile),
                            to,
                            accumulate,
                            residual: residual.map(|residual| residual.tile(tile)),
                            gate: gate.map(|gate| gate.tile(tile)),
                        });
                    });
                    Ok(())
                }

                fn product_weight_gradient(
                    &self,
                    linear: &Linear,
                    rows: &CpuRows,
                    input: &Matrix,
                    gradient: &Matrix,
                    scratch: &mut Matrix,
                    to: &mut Buffer,
                ) -> Done {
                    weights::weight_gradient(self, linear, rows, (input, gradient), scratch, to);
                    Ok(())
                }

                fn gate(&self, rows: &CpuRows, by: &Matrix, to: &mut Matrix) -> Done {
                    self.each_tile(rows, to, TILE * by.features, |tile, to| {
                        for (to, &by) in to.iter_mut().zip(by.tile(tile)) {
                            *to = if by > T::ZERO { *to } else { T::ZERO };
                        }
                    });
                    Ok(())
                }

                fn scratch_features(&self, inputs: usize) -> usize {
                    weights::padded(inputs)
                }

                fn gather(
                    &self,
                    table: ContextTable<'_, Self>,
                    reach: &Reach,
                    rows: &CpuRows,
                    to: &mut Matrix,
                ) -> Done {
                    self.each_tile(rows, to, TILE * reach.all(), |tile, to| {
                        let units = reach.units(rows.tile_dim(tile));
                        match &table {
                            ContextTable::Parameters { buffer, at, width } => {
                                self.run(lookup::Gather {
                                    table: &buffer[*at..],
                                    width: *width,
                                    units,
                                    rows,
                                    tile,
                                    to,
                                });
                            }
                            ContextTable::Computed(table) => lookup::gather_computed(table, units, rows, tile, to),
                        }
                    });
                    Ok(())
                }

                fn scatter(
                    &self,
                    from: &Matrix,
                    reach: &Reach,
                    rows: &CpuRows,
                    table: ContextTableGradient<'_, Self>,
                ) -> Done {
                    match table {
                        ContextTableGradient::Parameters { buffer, at, contexts, width } => {
                            self.run(lookup::Scatter {
                                from,
                                reach,
                                rows,
                                table: &mut buffer[at..at + contexts * width],
                                width,
                            });
                        }
                        ContextTableGradient::Computed(table) => lookup::scatter_computed(from, reach, rows, table),
                    }
                    Ok(())
                }

                fn gather_coordinates(
                    &self,
                    table: &Matrix,
                    k: usize,
                    rows: &CpuRows,
                    reversed: bool,
                    to: &mut Matrix,
                ) -> Done {
                    self.each_tile(rows, to, 4 * TILE * to.features, |tile, to| {
                        lookup::gather_coordinates(table, k, rows, reversed, tile, to);
                    });
                    Ok(())
                }

                fn scatter_coordinates(
                    &self,
                    from: &Matrix,
                    k: usize,
                    rows: &CpuRows,
                    reversed: bool,
                    table: &mut Matrix,
                ) -> Done {
                    lookup::scatter_coordinates(from, k, rows, reversed, table);
                    Ok(())
                }

                fn reverse(&self, rows: &CpuRows, from: &Matrix, to: &mut Matrix) -> Done {
                    self.each_tile(rows, to, 4 * TILE * from.features, |tile, to| {
                        self.run(lookup::Reverse { dims: rows.tile_dims(tile), from: from.tile(tile), to });
                    });
                    Ok(())
                }

                fn transform(
                    &self,
                    transform: &Transform,
                    rows: &CpuRows,
                    rho: &Matrix,
                    x: &Matrix,
                    y: &mut Matrix,
                    log_det: &mut Matrix,
                ) -> Done {
                    let cost = 16 * TILE * rho.features;
                    self.each_tile_pair(rows, (y, log_det), cost, |tile, y, log_det| {
                        let dims = rows.tile_dims(tile);
                        self.run(transform::Forward {
                            transform,
                            dims,
                            rho: rho.tile(tile),
                            x: x.tile(tile),
                            y,
                            log_det,
                        });
                    });
                    Ok(())
                }

                fn transform_gradient(
                    &self,
                    transform: &Transform,
                    rows: &CpuRows,
                    rho: &mut Matrix,
                    x: &Matrix,
                    log_det_gradient: &Matrix,
                    gradient: &mut Matrix,
                ) -> Done {
                    let cost = 16 * TILE * rho.features;
                    self.each_tile_pair(rows, (rho, gradient), cost, |tile, rho, gradient| {
                        let dims = rows.tile_dims(tile);
                        let log_det_gradient = log_det_gradient.tile(tile);
                        self.run(transform::Gradient {
                            transform,
                            dims,
                            rho,
                            x: x.tile(tile),
                            log_det_gradient,
                            gradient,
                        });
                    });
                    Ok(())
                }

                fn transform_inverse(
                    &self,
                    transform: &Transform,
                    rows: &CpuRows,
                    coordinates: Range<usize>,
                    rho: &Matrix,
                    y: &Matrix,
                    x: &mut Matrix,
                    log_det: &mut Matrix,
                ) -> Done {
                    let cost = 16 * TILE * transform.parameters() * coordinates.len();
                    self.each_tile_pair(rows, (x, log_det), cost, |tile, x, log_det| {
                        let dims = rows.tile_dims(tile);
                        let coordinates = coordinates.start..coordinates.end.min(dims[0] as usize);
                        let (rho, y) = (rho.tile(tile), y.tile(tile));
                        self.run(transform::Inverse { transform, dims, coordinates, rho, y, x, log_det });
                    });
                    Ok(())
                }

                fn transform_score(
                    &self,
                    transform: &Transform,
                    rows: &CpuRows,
                    coordinates: Range<usize>,
                    rho: &Matrix,
                    x: &Matrix,
                    later: &Matrix,
                    score: &mut Matrix,
                    rho_gradient: &mut Matrix,
                ) -> Done {
                    let cost = 32 * TILE * transform.parameters() * coordinates.len();
                    self.each_tile_pair(rows, (score, rho_gradient), cost, |tile, score, rho_gradient| {
                        let dims = rows.tile_dims(tile);
                        let coordinates = coordinates.start..coordinates.end.min(dims[0] as usize);
                        let (rho, x, later) = (rho.tile(tile), x.tile(tile), later.tile(tile));
                        self.run(transform::Score { transform, dims, coordinates, rho, x, later, score, rho_gradient });
                    });
                    Ok(())
                }

                fn broadcast(&self, parameters: &Buffer, at: usize, k: usize, rows: &CpuRows, to: &mut Matrix) -> Done {
                    let values = &parameters[at..at + k];
                    self.each_tile(rows, to, TILE * to.features, |tile, to| {
                        let features = rows.tile_dim(tile) as usize * k;
                        for (feature, row) in to.chunks_exact_mut(TILE).take(features).enumerate() {
                            row.fill(values[feature % k]);
                        }
                    });
                    Ok(())
                }

                fn broadcast_gradient(
                    &self,
                    from: &Matrix,
                    at: usize,
                    k: usize,
                    rows: &CpuRows,
                    to: &mut Buffer,
                ) -> Done {
                    lookup::broadcast_gradient(from, rows, k, &mut to[at..at + k]);
                    Ok(())
                }

                fn choose(&self, rows: &CpuRows, choice: Choice<'_, Matrix>) -> Done {
                    words::choose(self, rows, choice);
                    Ok(())
                }

                fn symbol_log_prob(
                    &self,
                    rows: &CpuRows,
                    symbols: Symbols<'_, Matrix>,
                    logits: &Matrix,
                    log_prob: &mut Matrix,
                ) -> Done {
                    let Symbols { variable, outputs, words } = symbols;
                    self.each_tile(rows, log_prob, 32 * TILE * outputs.len(), |tile, log_prob| {
                        let logits = &logits.tile(tile)[outputs.start * TILE..outputs.end * TILE];
                        let words = &words.tile(tile)[variable * TILE..][..TILE];
                        self.run(words::LogProb { logits, words, log_prob });
                    });
                    Ok(())
                }

                fn symbol_gradient(
                    &self,
                    rows: &CpuRows,
                    symbols: Symbols<'_, Matrix>,
                    weights: &Matrix,
                    logits: &mut Matrix,
                ) -> Done {
                    let Symbols { variable, outputs, words } = symbols;
                    self.each_tile(rows, logits, 32 * TILE * outputs.len(), |tile, logits| {
                        let logits = &mut logits[outputs.start * TILE..outputs.end * TILE];
                        let words = &words.tile(tile)[variable * TILE..][..TILE];
                        self.run(words::Gradient { logits, words, weights: weights.tile(tile) });
                    });
                    Ok(())
                }

                fn add_features(&self, rows: &CpuRows, features: Range<usize>, from: &Matrix, to: &mut Matrix) -> Done {
                    let run = features.start * TILE..features.end * TILE;
                    self.each_tile(rows, to, TILE * features.len(), |tile, to| {
                        to[run.clone()]
                            .iter_mut()
                            .zip(&from.tile(tile)[run.clone()])
                            .for_each(|(to, &from)| *to += from);
                    });
                    Ok(())
                }

                fn combine(&self, factor: f64, from: &Buffer, keep: f64, to: &mut Buffer) -> Done {
                    DeviceError::check_len("the buffer that is added", from.len(), to.len())?;
                    optimiser::combine(self, factor, from, keep, to);
                    Ok(())
                }

                fn record(&self) -> Result<UpdateRecord, DeviceError> {
                    Ok(UpdateRecord::default())
                }

                fn read_record(&self, record: &UpdateRecord) -> Result<UpdateRecord, DeviceError> {
                    Ok(*record)
                }

                fn write_record(&self, from: &UpdateRecord, to: &mut UpdateRecord) -> Done {
                    *to = *from;
                    Ok(())
                }

                fn norm(&self, buffer: &Buffer, record: &mut UpdateRecord) -> Done {
                    record.norm = optimiser::norm(self, buffer);
                    Ok(())
                }

                fn len(&self, buffer: &Buffer) -> usize {
                    (**buffer).len()
                }

                fn adamw(
                    &self,
                    step: &AdamWStep,
                    gradient: &Buffer,
                    (first, second): (&mut Buffer, &mut Buffer),
                    parameters: &mut Buffer,
                    record: &mut UpdateRecord,
                ) -> Done {
                    let lengths =
                        [("the gradient", gradient.len()), ("a moment", first.len()), ("a moment", second.len())];
                    lengths
                        .into_iter()
                        .try_for_each(|(what, found)| DeviceError::check_len(what, found, parameters.len()))?;
                    optimiser::adamw(self, step, gradient, (first, second), parameters, record);
                    Ok(())
                }

                fn descend(
                    &self,
                    rate: f64,
                    clip_norm: f64,
                    gradient: &Buffer,
                    parameters: &mut Buffer,
                    record: &mut UpdateRecord,
                ) -> Done {
                    DeviceError::check_len("the gradient", gradient.len(), parameters.len())?;
                    optimiser::descend(self, (rate, clip_norm), gradient, parameters, record);
                    Ok(())
                }

                fn shard_rows(&self, rows: usize, parameters: usize) -> usize {
                    // Every shard has gradients of its own. Running whole passes side by side spares a synchronisation per operation
                    // and keeps a shard's rows in its core's caches; shards of fewer rows would read the weights too often, and the
                    // gradients of large networks would cost too much memory.
                    const ROWS: usize = 8 * TILE;
                    const SHARDS: usize = 16;
                    const SMALL: usize = 1 << 22;
                    let share = rows.div_ceil(SHARDS).next_multiple_of(TILE).max(ROWS);
                    if parameters <= SMALL { rows.min(share) } else { rows }
                }

                fn row_grain(&self) -> usize {
                    TILE
                }

                fn independent_shard_rows(&self, rows: usize) -> usize {
                    rows.min(TILE)
                }
            }
        }
    };
}

device!(single_precision, f32);
device!(double_precision, f64);
