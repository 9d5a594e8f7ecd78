package dev.millrace.benchmarks.engine;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.workloads.closed.EnginePlan;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Eager PyTorch in a process of its own, which works when it is asked and says how long it took. Not thread-safe. */
final class TorchEngine implements AutoCloseable {
    private static final String SCRIPT = "load-tests/src/test/python/torch_engine.py";
    private static final String PYTHON = System.getProperty("python", "/usr/bin/python3");

    private final Process process;
    private final BufferedReader answers;
    private final PrintStream questions;
    private final String version;

    private TorchEngine(Process process) throws IOException {
        this.process = process;
        this.answers = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
        this.questions = new PrintStream(process.getOutputStream(), true, StandardCharsets.UTF_8);
        this.version = line();
    }

    /**
     * @throws IllegalStateException if Python cannot run it
     * @throws IOException if there is no such Python or script
     */
    static TorchEngine start(DecoderShape shape, EnginePlan plan) throws IOException {
        if (!Files.exists(Path.of(SCRIPT))) {
            throw new IOException("run this in the checkout's root: there is no " + SCRIPT + " here");
        }
        List<String> command = new ArrayList<>(List.of(PYTHON, SCRIPT));
        command.addAll(List.of(
                "vocab=" + shape.vocabSize(),
                "hidden=" + shape.hiddenSize(),
                "layers=" + shape.layers(),
                "heads=" + shape.heads(),
                "kv_heads=" + shape.kvHeads(),
                "head_size=" + shape.headSize(),
                "intermediate=" + shape.intermediateSize(),
                "theta=" + shape.ropeTheta(),
                "eps=" + shape.rmsNormEps(),
                "bias=" + shape.qkvBias(),
                "sequences=" + plan.sequences(),
                "prompt=" + plan.promptTokens(),
                "sampled=" + plan.sampledTokens()));
        ProcessBuilder builder = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT);
        builder.environment().put("OMP_NUM_THREADS", "1");
        builder.environment().put("OPENBLAS_NUM_THREADS", "1");
        return new TorchEngine(builder.start());
    }

    /** What PyTorch says of itself. */
    String version() {
        return version;
    }

    /** Seconds that a piece of work took there. */
    double seconds(String work) throws IOException {
        questions.println(work.toLowerCase(Locale.ROOT));
        return Double.parseDouble(line());
    }

    private String line() throws IOException {
        String line = answers.readLine();
        if (line == null) {
            throw new IllegalStateException(PYTHON
                    + " ended before it answered; it needs PyTorch (Debian's python3-torch and libopenblas0-pthread)");
        }
        return line;
    }

    @Override
    public void close() {
        process.destroy();
    }
}
