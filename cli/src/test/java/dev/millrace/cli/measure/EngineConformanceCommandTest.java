package dev.millrace.cli.measure;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.gateway.engine.EngineConfig.EngineLogProbs;
import dev.millrace.gateway.engine.EngineDouble;
import dev.millrace.gateway.engine.EngineDouble.Fault;
import dev.millrace.gateway.engine.SglangDouble;
import dev.millrace.gateway.engine.VllmDouble;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.weights.Weights;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** Against the doubles that the adapters are tested with: that the command finds what it says. No real engine was asked. */
@Timeout(300)
class EngineConformanceCommandTest {
    private static final Weights WEIGHTS =
            Weights.random(new DecoderShape(16, 32, 2, 4, 2, 8, 48, 256, 100, 1e-6, false, false), 3);

    @TempDir
    private Path folder;

    private final StringWriter said = new StringWriter();

    @BeforeEach
    void saveModel() throws IOException {
        new CheckpointDirectory(folder.resolve("model")).save(WEIGHTS);
    }

    private int run(String kind, EngineDouble engine, String logProbs) {
        CommandLine command = new CommandLine(new ConformanceCommand())
                .setCaseInsensitiveEnumValuesAllowed(true)
                .setOut(new PrintWriter(said));
        return command.execute(
                "engine",
                "--kind",
                kind,
                "--url",
                engine.url(),
                "--model",
                folder.resolve("model").toString(),
                "--directory",
                folder.resolve("versions").toString(),
                "--dtype",
                "f32",
                "--log-probs",
                logProbs,
                "--tolerance",
                "0.02",
                "--longest",
                "250");
    }

    @Test
    void shouldFindNothingWrongWithAnEngineThatDoesWhatVllmIsDocumentedToDo() {
        try (VllmDouble engine = new VllmDouble(WEIGHTS, EngineLogProbs.RAW)) {
            assertThat(run("vllm", engine, "raw")).as(said::toString).isZero();
            assertThat(engine.violations()).isEmpty();
        }
        assertThat(said.toString())
                .contains("vllm 0.32.0, weights of version 'default'")
                .contains("twice the same 8 tokens")
                .contains(" 0 failed");
    }

    @Test
    void shouldFindNothingWrongWithAnEngineThatDoesWhatSglangIsDocumentedToDo() {
        try (SglangDouble engine = new SglangDouble(WEIGHTS, EngineLogProbs.PROCESSED)) {
            assertThat(run("sglang", engine, "processed")).as(said::toString).isZero();
            assertThat(engine.violations()).isEmpty();
        }
        assertThat(said.toString()).contains("left out  samples by the seed").contains(" 0 failed");
    }

    @Test
    void shouldSayWhatAnEngineDoesNotDo() {
        try (SglangDouble engine = new SglangDouble(WEIGHTS, EngineLogProbs.PROCESSED)) {
            engine.fault(Fault.NAMES_NO_VERSIONS);
            assertThat(run("sglang", engine, "raw")).isEqualTo(1);
        }
        assertThat(said.toString())
                .contains("FAILED  its log-probs are raw ones of these weights")
                .contains("set engine.log_probs=processed")
                .contains("FAILED  says which version sampled which token");
    }
}
