use std::time::Instant;
use vti::engine::{CpuEngine, Engine};
use vti::flow::*;
use vti::random::{Purpose, Stream};
use vti::train::*;
fn main() {
    let case = std::env::args().nth(1).unwrap();
    let threads: usize = std::env::args().nth(2).map_or(2, |t| t.parse().unwrap());
    let (settings, shape) = match case.as_str() {
        "a" | "am" => (FlowSettings::spline(4, 6, 512), FlowShape { max_dim: 8, context: ContextShape::Symbols(128) }),
        "b" | "bm" => (FlowSettings::affine(5, 5, 16), FlowShape { max_dim: 8, context: ContextShape::Symbols(128) }),
        _ => (FlowSettings::affine(5, 5, 128), FlowShape { max_dim: 540, context: ContextShape::Features(100) }),
    };
    let flow = Flow::new(&settings, shape).unwrap();
    let engine = CpuEngine::<f32>::new(threads).unwrap();
    let rows = 1024;
    let mut batch = Batch::new();
    let mut s = Stream::new(1, Purpose::Other(1), 0, 0);
    for _ in 0..rows {
        match shape.context {
            ContextShape::Symbols(n) => {
                let m = s.below(n as u64) as u32;
                let mut act: Vec<u32> = vec![0];
                for j in 0..7 { if !case.ends_with('m') || m >> j & 1 == 1 { act.push(j + 1) } }
                batch.push(&act, m);
            }
            ContextShape::Features(n) => {
                let f: Vec<f32> = (0..n).map(|_| s.below(2) as f32).collect();
                let c = batch.push_features(&f);
                let d = s.below(541) as u32;
                let act: Vec<u32> = (0..d).collect();
                batch.push(&act, c);
            }
        }
    }
    let z: Vec<f32> = (0..rows * shape.max_dim).map(|_| s.normal() as f32).collect();
    let n = flow.parameter_count();
    let mut p = engine.buffer(n);
    engine.write(&flow.initial_parameters(1), &mut p);
    let mut g = engine.buffer(n);
    let mut opt = AdamW::new(&engine, n, AdamWSettings::default());
    let mut work = flow.workspace(&engine, rows, Passes::Training);
    let mut theta = vec![0.0f32; z.len()];
    let mut ld = vec![0.0f32; rows];
    let dld = vec![-1.0 / rows as f32; rows];
    engine.scope(|| {
        let mut best = [f64::MAX; 6];
        for it in 0..if case.starts_with('b') { 200 } else { 12 } {
            let t = Instant::now();
            work.set_batch(&engine, &batch).unwrap();
            work.write_z(&engine, &z);
            let t0 = t.elapsed().as_secs_f64();
            flow.forward(&engine, &p, &mut work);
            let t1 = t.elapsed().as_secs_f64();
            work.read_theta(&engine, &mut theta, &mut ld).unwrap();
            for x in &mut theta { *x /= rows as f32; }
            work.write_gradients(&engine, &theta, &dld);
            let t2 = t.elapsed().as_secs_f64();
            flow.backward(&engine, &p, &mut work, &mut g);
            let t3 = t.elapsed().as_secs_f64();
            opt.update(&engine, 1e-3, &g, &mut p);
            let t4 = t.elapsed().as_secs_f64();
            if it > 2 { for (b, t) in best.iter_mut().zip([t0, t1 - t0, t2 - t1, t3 - t2, t4 - t3, t4]) { *b = b.min(t * 1e3); } }
        }
        println!("{case} params {n} set {:.3} fwd {:.3} io {:.3} bwd {:.3} adam {:.3} total {:.3} ms", best[0], best[1], best[2], best[3], best[4], best[5]);
        let mut eval = flow.workspace(&engine, rows, Passes::Evaluation);
        eval.set_batch(&engine, &batch).unwrap();
        eval.write_z(&engine, &z);
        let (mut f, mut i) = (f64::MAX, f64::MAX);
        for _ in 0..10 {
            let t = Instant::now();
            flow.forward(&engine, &p, &mut eval);
            f = f.min(t.elapsed().as_secs_f64());
            let t = Instant::now();
            flow.inverse(&engine, &p, &mut eval);
            i = i.min(t.elapsed().as_secs_f64());
        }
        println!("   eval fwd {:.3} inverse {:.3} ms", f * 1e3, i * 1e3);
    });
}
