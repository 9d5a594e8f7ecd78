package dev.millrace.chaos.process;

import dev.millrace.chaos.halt.ProtocolPoint;
import dev.millrace.schemas.run.RunTopics;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;

/** What a process of a run does. */
public enum Part {
    ADMISSION("admit", RunTopics::prompts, List.of(), List.of("prompts", "admission")),
    GENERATOR("generate", RunTopics::rollouts, List.of("prompts"), List.of("rollouts", "serving")),
    SCORER("score", RunTopics::scores, List.of("rollouts"), List.of("scores", "serving")),
    TOPOLOGY("stream", RunTopics::trajectories, List.of("rollouts", "scores"), List.of("trajectories", "batches")),
    LEARNER(
            "learn",
            RunTopics::policyVersions,
            List.of("trajectories", "batches"),
            List.of("weights", "optimizer-state", "policy-versions", "training-log"));

    private final String command;
    private final Function<RunTopics, String> output;
    private final List<String> reads;
    private final List<String> sendsTo;

    Part(String command, Function<RunTopics, String> output, List<String> reads, List<String> sendsTo) {
        this.command = command;
        this.output = output;
        this.reads = reads;
        this.sendsTo = sendsTo;
    }

    /** Of {@code millrace}. */
    String command() {
        return command;
    }

    /** The topic whose records show that it works. */
    public String output(RunTopics topics) {
        return output.apply(topics);
    }

    /** Topics whose records it waits for, without the run's prefix. */
    public List<String> reads() {
        return reads;
    }

    /** Every topic that it writes to while it works, without the run's prefix. */
    public List<String> sendsTo() {
        return sendsTo;
    }

    /** Points of its protocols that are no sends. */
    public List<ProtocolPoint> points() {
        return switch (this) {
            case ADMISSION -> List.of(ProtocolPoint.COMMIT, ProtocolPoint.MANIFEST);
            case TOPOLOGY -> List.of(ProtocolPoint.COMMIT, ProtocolPoint.OFFSETS);
            case GENERATOR, SCORER, LEARNER -> List.of(ProtocolPoint.values());
        };
    }

    /** For people. */
    public String word() {
        return name().toLowerCase(Locale.ROOT);
    }
}
