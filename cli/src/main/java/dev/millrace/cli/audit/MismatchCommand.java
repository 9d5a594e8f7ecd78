package dev.millrace.cli.audit;

import dev.millrace.cli.ScreenCommand;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.huggingface.CheckpointException;
import dev.millrace.policy.session.Device;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.InferenceException;
import dev.millrace.policy.session.WeightPlacement;
import dev.millrace.policy.weights.Weights;
import dev.millrace.report.Column;
import dev.millrace.report.Report;
import dev.millrace.report.ReportText;
import dev.millrace.report.Section;
import dev.millrace.report.Table;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.report.AuditedRun;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.workloads.closed.EnginePlan;
import dev.millrace.workloads.closed.MismatchTrial;
import dev.millrace.workloads.closed.MismatchTrial.Mismatch;
import dev.millrace.workloads.closed.MismatchTrial.Routing;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/**
 * {@code millrace doctor mismatch}: compares log-probs of a generator's engine with the scorer's under the same
 * weights.
 */
@Command(
        name = "mismatch",
        description = "Samples sequences with the generator's engine in each precision and scores them with the "
                + "scorer's under the same weights: the gap between behavior and old log-probs without "
                + "staleness. For a mixture of experts also with replayed routing. The model is a directory or "
                + "the newest version of a run. Prompts are random tokens.",
        footer = {
            "",
            "millrace doctor mismatch --model models/Qwen2.5-0.5B",
            "millrace doctor mismatch --run-dir runs/<run id> --precision bf16,int8",
            "",
            "Exit codes: 0 it was measured; 1 a failure; 2 a mistake in the command line."
        })
public final class MismatchCommand extends ScreenCommand {
    private static final int TOKEN_BUDGET = 4096;
    private static final List<Column<Mismatch>> OF_EXPERTS = List.of(
            Column.text(
                    "routing",
                    each -> each.routing() == Routing.REPLAYED ? "the generator's, replayed" : "each its own"),
            Column.<Mismatch>number("other experts", 2, each -> 100 * each.otherExperts())
                    .in("% of choices"));
    private static final List<Column<Mismatch>> COLUMNS = List.of(
            Column.text("generator.precision", each -> each.precision().name().toLowerCase(Locale.ROOT)),
            Column.<Mismatch>number("sampled", 0, Mismatch::sampledRate).in("tokens/s"),
            Column.<Mismatch>significant(
                            "mean difference", 2, each -> each.gap().mean())
                    .in("nats"),
            Column.<Mismatch>significant("largest", 2, each -> each.gap().most())
                    .in("nats"),
            Column.<Mismatch>significant("KL (k3)", 2, each -> each.gap().kl()).in("nats"),
            Column.<Mismatch>number("ESS ratio", 4, each -> each.gap().ess()));

    @Option(names = "--model", paramLabel = "DIR", description = "A model directory, in place of a run.")
    private Path model;

    @Option(
            names = "--precision",
            split = ",",
            paramLabel = "PRECISION",
            description = "Precision of the generator's engine: f32, bf16, int8 (default: all of them).")
    private List<Precision> precisions = List.of(Precision.values());

    @Option(names = "--device", paramLabel = "DEVICE", description = "cpu, cuda:N or cuda:N:tf32 (default: cpu).")
    private String device = "cpu";

    @Option(names = "--sequences", paramLabel = "N", description = "Sequences side by side (default: 8).")
    private int sequences = 8;

    @Option(names = "--prompt-tokens", paramLabel = "N", description = "Tokens of each prompt (default: 16).")
    private int promptTokens = 16;

    @Option(names = "--tokens", paramLabel = "N", description = "Sampled tokens of each sequence (default: 64).")
    private int tokens = 64;

    @Option(names = "--rounds", paramLabel = "N", description = "Rounds (default: 4).")
    private int rounds = 4;

    @Mixin
    private RunOptions run;

    @Override
    public Integer call() throws IOException {
        if ((model == null) == !run.isGiven()) {
            throw new ConfigException("give a model directory or a run: either --model DIR,"
                    + " or --run-dir DIR, or --bootstrap-servers HOST:PORT with --run ID");
        }
        Engine engine;
        try {
            engine = new Engine(Device.parse(device), 1);
            engine.requireUsable();
        } catch (IllegalArgumentException | InferenceException e) {
            throw new RefusedRequestException(String.valueOf(e.getMessage()), e);
        }
        if (model != null) {
            CheckpointDirectory checkpoint = new CheckpointDirectory(model);
            try {
                EnginePlan plan = plan(checkpoint.shape());
                return tell("model " + model, measure(engine, checkpoint.load(), plan));
            } catch (CheckpointException e) {
                throw new ConfigException(String.valueOf(e.getMessage()), e);
            }
        }
        try (AuditedRun audited = run.open();
                PolicyFeed feed =
                        new PolicyFeed(audited.connection(), audited.config().weights())) {
            PolicyVersion newest = feed.newestCommitted()
                    .orElseThrow(() -> new RefusedRequestException("the run has published no version yet"));
            EnginePlan plan = plan(PolicyFeed.shapeOf(newest));
            return tell(
                    audited.title() + ", version " + newest.getVersion(),
                    measure(engine, feed.load(newest.getVersion()), plan));
        }
    }

    private EnginePlan plan(DecoderShape shape) {
        EnginePlan plan;
        try {
            plan = new EnginePlan(
                    sequences, promptTokens, tokens, 1, TOKEN_BUDGET, WeightPlacement.AUTO, Precision.F32, rounds);
        } catch (IllegalArgumentException e) {
            throw new RefusedRequestException(String.valueOf(e.getMessage()), e);
        }
        if (plan.length() > shape.maxPositions()) {
            throw new RefusedRequestException("--prompt-tokens and --tokens make sequences of " + plan.length()
                    + " tokens, and the model has " + shape.maxPositions() + " positions; give fewer");
        }
        return plan;
    }

    private List<Mismatch> measure(Engine engine, Weights weights, EnginePlan plan) {
        MismatchTrial trial = new MismatchTrial(engine, weights, plan);
        return precisions.stream()
                .distinct()
                .flatMap(precision -> trial.measure(precision).stream())
                .toList();
    }

    /** Lines about experts; none without them. */
    private static List<Column<Mismatch>> columns(List<Mismatch> found) {
        if (found.get(0).routing() == Routing.DENSE) {
            return COLUMNS;
        }
        List<Column<Mismatch>> columns = new ArrayList<>(COLUMNS);
        columns.addAll(1, OF_EXPERTS);
        return columns;
    }

    private int tell(String title, List<Mismatch> found) {
        Report report = Report.of(title, List.of())
                .with(Section.of("Sampled by the generator's engine, scored by the scorer's")
                        .with(Table.of("", columns(found), found)));
        out().println(title);
        ReportText.lines(report).forEach(out()::println);
        paragraph(String.format(
                Locale.ROOT,
                "Each over %,d tokens on %s. A bound below the mean difference"
                        + " (admission.quarantine.max_difference) would quarantine such a generator.",
                found.get(0).tokens(),
                device));
        return 0;
    }
}
