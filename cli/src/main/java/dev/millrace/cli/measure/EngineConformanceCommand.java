package dev.millrace.cli.measure;

import dev.millrace.cli.ScreenCommand;
import dev.millrace.gateway.engine.EngineConfig;
import dev.millrace.gateway.engine.EngineConfig.EngineDtype;
import dev.millrace.gateway.engine.EngineConfig.EngineKind;
import dev.millrace.gateway.engine.EngineConfig.EngineLogProbs;
import dev.millrace.gateway.engine.EngineConformance;
import dev.millrace.gateway.engine.EngineConformance.Check;
import dev.millrace.gateway.engine.EngineConformance.Outcome;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.huggingface.CheckpointException;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.weights.Weights;
import dev.millrace.runtime.RefusedRequestException;
import java.io.IOException;
import java.nio.file.Path;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code millrace conformance engine}: whether a running vLLM or SGLang does what generators and gateways rely on. */
@Command(
        name = "engine",
        description = "Tests a running vLLM or SGLang for what engine.kind needs: token input and output, "
                + "log-probs, stops, seeds, weight updates under load. Compares with Millrace's own engine. "
                + "Needs no run and no Kafka. The engine ends with the model's weights.",
        footer = {
            "",
            "VLLM_SERVER_DEV_MODE=1 vllm serve models/Qwen2.5-0.5B --enable-scale-out",
            "millrace conformance engine --kind vllm --url http://127.0.0.1:8000 --model models/Qwen2.5-0.5B --directory /tmp/versions",
            "",
            "Exit codes: 0 nothing failed; 1 something did; 2 a mistake in the command line."
        })
public final class EngineConformanceCommand extends ScreenCommand {
    /** Exit status if a check failed. */
    private static final int FAILED = 1;

    private static final long LIMIT_MS = 600_000;

    @Option(names = "--kind", paramLabel = "KIND", required = true, description = "vllm or sglang.")
    private EngineKind kind;

    @Option(
            names = "--url",
            paramLabel = "URL",
            required = true,
            description = "Base URL without /v1, such as http://127.0.0.1:8000.")
    private String url;

    @Option(
            names = "--model",
            paramLabel = "DIR",
            required = true,
            description = "Hugging Face directory of its model.")
    private Path model;

    @Option(
            names = "--directory",
            paramLabel = "DIR",
            required = true,
            description = "Folder for changed versions, written by this command and read by the engine.")
    private Path directory;

    @Option(
            names = "--seen-as",
            paramLabel = "DIR",
            description = "The folder's path on the engine's machine, if different.")
    private String seenAs = "";

    @Option(names = "--served-model", paramLabel = "NAME", description = "Model name in vLLM, if it serves several.")
    private String servedModel = "";

    @Option(names = "--key-variable", paramLabel = "NAME", description = "Environment variable with its API key.")
    private String keyVariable = "";

    @Option(
            names = "--dtype",
            paramLabel = "TYPE",
            description = "Its compute dtype: f32, bf16 or f16 (default: bf16).")
    private EngineDtype dtype = EngineDtype.BF16;

    @Option(
            names = "--log-probs",
            paramLabel = "MODE",
            description = "Its log-probs: raw, or processed by the temperature (default: raw; SGLang's are processed).")
    private EngineLogProbs logProbs = EngineLogProbs.RAW;

    @Option(
            names = "--tolerance",
            paramLabel = "NATS",
            description = "Largest mean difference of log-probs to Millrace's engine (default: 0.25).")
    private double tolerance = 0.25;

    @Option(
            names = "--longest",
            paramLabel = "TOKENS",
            description = "Tokens of the answer during the weight update (default: 1024; at most the model's "
                    + "positions).")
    private int longest = 1024;

    @Override
    public Integer call() {
        EngineConfig config;
        try {
            config = new EngineConfig(
                    kind,
                    url,
                    keyVariable,
                    servedModel,
                    directory.toString(),
                    seenAs,
                    dtype,
                    logProbs,
                    32,
                    tolerance,
                    2,
                    LIMIT_MS,
                    LIMIT_MS,
                    LIMIT_MS);
        } catch (IllegalArgumentException e) {
            throw mistake(String.valueOf(e.getMessage()), e);
        }
        Weights weights = weights();
        if (longest < 16 || longest > weights.shape().maxPositions()) {
            throw mistake("--longest must be from 16 to " + weights.shape().maxPositions() + ", the positions of "
                    + model + ": " + longest);
        }
        int[] counts = new int[Outcome.values().length];
        boolean isSound = new EngineConformance(config, model.toString(), weights, Engine.cpu(), longest, check -> {
                    counts[check.outcome().ordinal()]++;
                    say(check);
                })
                .run();
        out().println(counts[Outcome.PASSED.ordinal()] + " passed, " + counts[Outcome.FAILED.ordinal()] + " failed, "
                + counts[Outcome.LEFT_OUT.ordinal()] + " left out");
        return isSound ? 0 : FAILED;
    }

    private Weights weights() {
        try {
            return new CheckpointDirectory(model).load();
        } catch (IOException | CheckpointException e) {
            throw new RefusedRequestException("--model " + model + " cannot be read: " + e.getMessage(), e);
        }
    }

    private void say(Check check) {
        String outcome = check.outcome() == Outcome.LEFT_OUT
                ? "left out"
                : check.outcome() == Outcome.PASSED ? "passed" : "FAILED";
        out().println(outcome + "  " + check.name());
        out().println("          " + check.sentence());
    }
}
