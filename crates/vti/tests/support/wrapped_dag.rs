//! Problems that are causal graphs but for one thing: the rest is that of their field `dag`.

/// The methods of `Blocks` about keys, coordinates and features.
macro_rules! blocks_of_dag {
    () => {
        fn count(&self) -> usize {
            self.dag.count()
        }

        fn width(&self) -> usize {
            self.dag.width()
        }

        fn keys(&self, word: &[u16], keys: &mut [u64]) {
            self.dag.keys(word, keys);
        }

        fn mark_active(&self, node: usize, parents: u64, active: &mut [bool]) {
            Blocks::mark_active(&self.dag, node, parents, active);
        }

        fn feature_count(&self) -> usize {
            self.dag.feature_count()
        }

        fn features(&self, node: usize, parents: u64, to: &mut [f64]) {
            Blocks::features(&self.dag, node, parents, to);
        }
    };
}

/// The methods of `BlockModels` but for the prior.
#[allow(unused_macros, reason = "not all wrappers have a prior of their own")]
macro_rules! block_models_of_dag {
    () => {
        fn all_keys(&self, node: usize, max: usize) -> Option<Vec<u64>> {
            self.dag.all_keys(node, max)
        }

        fn smallest_key(&self, node: usize) -> u64 {
            self.dag.smallest_key(node)
        }

        fn larger_keys(&self, node: usize, parents: u64) -> Vec<u64> {
            self.dag.larger_keys(node, parents)
        }

        fn size(&self, parents: u64) -> u32 {
            self.dag.size(parents)
        }

        fn for_each_feature(&self, node: usize, parents: u64, visit: &mut dyn FnMut(usize)) {
            self.dag.for_each_feature(node, parents, visit);
        }

        fn log_words(&self, parents: &[u64]) -> f64 {
            self.dag.log_words(parents)
        }

        fn words_share(&self) -> bool {
            self.dag.words_share()
        }

        fn sums(&self) -> Box<dyn ModelSums> {
            self.dag.sums()
        }
    };
}
