//! Parts of θ that belong to parts of a model.

/// Blocks of coordinates: block b owns `width` consecutive ones from `b · width` on, and which of them are active depends on
/// the block's *key* only, a part of the model that fits into 64 bits.
///
/// Where a density factorises over blocks ([`Problem::factors`](crate::problem::Problem::factors)), what is learned about a
/// block under a key serves all models that share the key.
///
/// ```
/// use vti::space::{Dags, ModelSpace};
/// let space = Dags::new(3, 2)?;
/// let blocks = space.blocks().expect("nodes are blocks");
/// let mut keys = [0; 3];
/// blocks.keys(&[0, 0, 1, 0, 1], &mut keys); // x1 → x2 → x3
/// assert_eq!(keys, [0b000, 0b001, 0b010]);
/// # Ok::<(), vti::space::SpaceError>(())
/// ```
pub trait Blocks: Send + Sync {
    /// How many there are.
    fn count(&self) -> usize;

    /// Coordinates of each.
    fn width(&self) -> usize;

    /// Overwrites `keys` with the key of each block in a model.
    fn keys(&self, word: &[u16], keys: &mut [u64]);

    /// Overwrites `active`, of length [`width`](Self::width), with the coordinates that a block uses under a key.
    fn mark_block(&self, block: usize, key: u64, active: &mut [bool]);

    /// Number of [`block_features`](Self::block_features).
    fn block_feature_count(&self) -> usize;

    /// Overwrites `to` with what a network sees of a block and its key.
    fn block_features(&self, block: usize, key: u64, to: &mut [f64]);
}
