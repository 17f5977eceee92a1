//! Drawing 1,024 words of 54 bits, each unit of the network once.

use anyhow::Result;
use vti::device::{Cpu, Device};
use vti::models::{WordNet, WordNetSettings, WordPasses, WordWorkspace};
use vti::random::{Purpose, Stream};

use crate::timing::seconds;

const ROWS: usize = 1024;

/// What is drawn.
pub(crate) const WHAT: &str = "1,024 words of 54 bits, hidden 128, 6 blocks";

/// A network, its memory and the uniform numbers to draw from.
pub(crate) struct Words {
    device: Cpu<f32>,
    net: WordNet,
    parameters: <Cpu<f32> as Device>::Buffer,
    work: WordWorkspace<Cpu<f32>>,
}

impl Words {
    pub(crate) fn new(threads: usize) -> Result<Self> {
        let arities = [2; 54];
        let net = WordNet::new(&arities, &WordNetSettings { hidden: 128, blocks: 6, ..WordNetSettings::default() })?;
        let device = Cpu::new(threads)?;
        let mut parameters = device.buffer(net.parameter_count())?;
        device.write(&net.initial_parameters(1), &mut parameters)?;
        let mut work = net.workspace(&device, ROWS, WordPasses::Evaluation)?;
        let mut stream = Stream::new(1, Purpose::Models, 0, 0);
        let uniforms: Vec<f32> = (0..ROWS * arities.len()).map(|_| stream.uniform() as f32).collect();
        work.write_uniforms(&device, &uniforms)?;
        Ok(Self { device, net, parameters, work })
    }

    /// Seconds of drawing all words: the mean of a few draws in a row, as the peer's full passes find its weights in the caches
    /// too.
    pub(crate) fn draw(&mut self) -> Result<f64> {
        const IN_A_ROW: u32 = 16;
        let Self { device, net, parameters, work } = self;
        let all = seconds(|| (0..IN_A_ROW).try_for_each(|_| Ok(net.sample(device, parameters, work, None)?)))?;
        Ok(all / f64::from(IN_A_ROW))
    }
}
