//! Drawing 1,024 words of 54 bits: each unit of the network once, or a full pass per symbol.

use anyhow::Result;
use vti::engine::{CpuEngine, Engine};
use vti::models::{WordNet, WordNetSettings, WordPasses, WordWorkspace};
use vti::random::{Purpose, Stream};

use crate::timing::seconds;

const ROWS: usize = 1024;

/// What is drawn.
pub(crate) const WHAT: &str = "1,024 words of 54 bits, hidden 128, 6 blocks";

/// A network, its memory and the uniform numbers to draw from.
pub(crate) struct Words {
    engine: CpuEngine<f32>,
    net: WordNet,
    parameters: <CpuEngine<f32> as Engine>::Buffer,
    work: WordWorkspace<CpuEngine<f32>>,
}

impl Words {
    pub(crate) fn new(threads: usize) -> Result<Self> {
        let arities = [2; 54];
        let net = WordNet::new(&arities, &WordNetSettings { hidden: 128, blocks: 6, ..WordNetSettings::default() })?;
        let engine = CpuEngine::new(threads)?;
        let mut parameters = engine.buffer(net.parameter_count());
        engine.write(&net.initial_parameters(1), &mut parameters);
        let mut work = net.workspace(&engine, ROWS, WordPasses::Evaluation);
        let mut stream = Stream::new(1, Purpose::Models, 0, 0);
        let uniforms: Vec<f32> = (0..ROWS * arities.len()).map(|_| stream.uniform() as f32).collect();
        work.write_uniforms(&engine, &uniforms)?;
        Ok(Self { engine, net, parameters, work })
    }

    /// Seconds by evaluating each unit once: the mean of a few draws in a row, as a run of full passes finds its weights in
    /// the caches too.
    pub(crate) fn incremental(&mut self) -> Result<f64> {
        const IN_A_ROW: u32 = 16;
        let Self { engine, net, parameters, work } = self;
        let all = seconds(|| (0..IN_A_ROW).try_for_each(|_| Ok(net.sample(engine, parameters, work, None)?)))?;
        Ok(all / f64::from(IN_A_ROW))
    }

    /// Seconds by a full pass for every symbol.
    pub(crate) fn by_full_passes(&mut self) -> Result<f64> {
        let Self { engine, net, parameters, work } = self;
        seconds(|| Ok(net.sample_by_full_passes(engine, parameters, work, None)?))
    }
}
