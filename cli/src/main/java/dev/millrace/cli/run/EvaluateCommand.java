package dev.millrace.cli.run;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import dev.millrace.api.environment.TaskSettings;
import dev.millrace.cli.Logs;
import dev.millrace.cli.ScreenCommand;
import dev.millrace.cli.StopSignals;
import dev.millrace.cli.audit.NotFoundException;
import dev.millrace.cli.audit.RunOptions;
import dev.millrace.generator.environment.text.JsonLines;
import dev.millrace.generator.environment.text.TextTask;
import dev.millrace.log.Evaluations;
import dev.millrace.log.run.RoleRights;
import dev.millrace.policy.session.Device;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.InferenceException;
import dev.millrace.report.Lines;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.EvaluationConfig;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.evaluation.EvaluationJson;
import dev.millrace.runtime.evaluation.EvaluationRecords;
import dev.millrace.runtime.evaluation.EvaluationText;
import dev.millrace.runtime.evaluation.HeldOutTrial;
import dev.millrace.runtime.evaluation.UnjudgedException;
import dev.millrace.runtime.pipeline.Pipeline;
import dev.millrace.runtime.pipeline.SingleRole;
import dev.millrace.schemas.DifficultyLengths;
import dev.millrace.schemas.PassAtKEstimate;
import dev.millrace.schemas.VersionEvaluation;
import dev.millrace.weights.CorruptVersionException;
import dev.millrace.weights.VersionUnavailableException;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code millrace evaluate}: evaluates a version of a run on held-out prompts. */
@Command(
        name = "evaluate",
        description = "Evaluates a version of a run on held-out prompts: mean reward, pass@k, lengths by "
                + "difficulty, with intervals. Repeatable bit for bit. Reads only; --follow is the role that "
                + "evaluates and records published versions.",
        footer = {
            "",
            "millrace evaluate --run-dir runs/<run id> --version best",
            "millrace evaluate --bootstrap-servers kafka:9092 --run my-run --version 40 --samples 16",
            "millrace evaluate --run-dir runs/<run id> --recorded",
            "millrace evaluate --archive my-run.archive --version last",
            "millrace evaluate --bootstrap-servers kafka:9092 --run my-run --follow --set evaluation.every_versions=10",
            "",
            "Exit codes: 0 done; 1 a failure; 2 a mistake in the command line; 5 there is no such version or record."
        })
public final class EvaluateCommand extends ScreenCommand {
    private static final String BEST = "best";
    private static final String LAST = "last";

    /** Mode of the command. */
    static final class Way {
        @Option(
                names = "--version",
                paramLabel = "V",
                description = "Version to evaluate: a number, last, or best by recorded held-out reward (default: "
                        + "last). Its weights must still be kept.")
        private String version;

        @Option(names = "--recorded", description = "Print the recorded evaluations only.")
        private boolean recorded;

        @Option(
                names = "--follow",
                description = "Evaluate published versions when due (evaluation.every_versions or .every_seconds). "
                        + "One per run: a second one takes over and the first stops. Ends with Ctrl-C.")
        private boolean follow;
    }

    @ArgGroup
    private Way way = new Way();

    @Option(
            names = "--prompts",
            paramLabel = "N",
            description = "How many held-out prompts (default: the run's evaluation.prompts).")
    private Integer prompts;

    @Option(
            names = "--samples",
            paramLabel = "N",
            description = "Responses to each (default: the run's evaluation.samples).")
    private Integer samples;

    @Option(
            names = "--data",
            paramLabel = "FILE",
            description = "Held-out prompts as JSON lines, in place of the run's own.")
    private Path data;

    @Option(
            names = "--archive",
            paramLabel = "DIR",
            description = "Archive of 'millrace export', in place of a run; must hold the version's weights.")
    private Path archive;

    @Option(
            names = "--device",
            paramLabel = "DEVICE",
            description = "Where to sample: cpu, cuda:N or cuda:N:tf32 (default: cpu).")
    private String device = "cpu";

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    @Mixin
    private RunOptions run;

    @Override
    public Integer call() throws Exception {
        if (way.recorded || way.follow) {
            refuseBeside(way.recorded ? "--recorded" : "--follow");
        }
        if (way.follow) {
            Logs.ofRole();
            SingleRole single = new SingleRole(run::over, RoleRights.EVALUATOR, false, false, out());
            return StopSignals.during(() -> single.run(Pipeline::evaluation), single::stop)
                    ? 0
                    : StopSignals.INTERRUPTED;
        }
        try (EvaluatedRun evaluated = opened()) {
            if (!json) {
                out().println(evaluated.title());
            }
            if (way.recorded) {
                recorded(evaluated);
            } else {
                tried(evaluated);
            }
            return 0;
        }
    }

    private EvaluatedRun opened() {
        if (archive == null) {
            return EvaluatedRun.on(run.open());
        }
        if (run.isGiven() || way.follow) {
            throw mistake(
                    way.follow
                            ? "--follow evaluates a live run, and an archive is not live; leave one of them out"
                            : "--archive names the run; leave out --run-dir, --run and --bootstrap-servers, or --archive");
        }
        return EvaluatedRun.in(archive, run.file());
    }

    private void refuseBeside(String option) {
        if (prompts != null || samples != null || data != null) {
            throw mistake(option + " uses the run's configuration; leave out --prompts, --samples and --data"
                    + (option.equals("--follow") ? ", or set them: --set evaluation.samples=16" : ""));
        }
        if (option.equals("--follow") && (json || run.folder() != null)) {
            throw mistake(
                    json
                            ? "--follow writes records to the run's log, and --recorded --json prints them; leave --json out"
                            : "--follow is a role on a cluster, and millrace train evaluates by itself the run of its folder"
                                    + " (evaluation.every_versions); give --bootstrap-servers and --run");
        }
    }

    private void recorded(EvaluatedRun evaluated) {
        Evaluations evaluations = evaluated.evaluations();
        if (json) {
            ArrayNode all = new ObjectMapper().createArrayNode();
            evaluations.onSamePrompts().forEach(evaluation -> all.add(EvaluationJson.whole(evaluation)));
            out().println(all.toPrettyString());
            return;
        }
        if (evaluations.isEmpty()) {
            throw new NotFoundException(
                    "no version of the run was evaluated on held-out prompts; evaluation.every_versions sets the"
                            + " interval, and without --recorded a version is evaluated now");
        }
        all(evaluations).forEach(out()::println);
    }

    private void tried(EvaluatedRun evaluated) {
        MillraceConfig config = evaluated.config();
        config.requirePartners();
        long wanted = version(evaluated);
        try {
            HeldOutTrial trial =
                    new HeldOutTrial(evaluated.run(), config, held(config), asked(config), engine(), Clock.systemUTC());
            VersionEvaluation evaluation = trial.of(evaluated.versions(wanted), wanted, 0, () -> {});
            if (json) {
                out().println(EvaluationJson.whole(evaluation).toPrettyString());
            } else {
                one(evaluation).forEach(out()::println);
            }
        } catch (VersionUnavailableException | CorruptVersionException e) {
            throw BEST.equals(way.version)
                    ? BestVersion.gone(evaluated.evaluations(), String.valueOf(e.getMessage()), evaluated::isKept)
                    : new NotFoundException(e.getMessage() + "; give --version a version whose weights are kept");
        } catch (UnjudgedException e) {
            throw new RefusedRequestException(String.valueOf(e.getMessage()), e);
        }
    }

    private long version(EvaluatedRun evaluated) {
        String asked = way.version == null ? LAST : way.version;
        long newest =
                evaluated.newest().orElseThrow(() -> new NotFoundException("the run has published no version yet"));
        if (asked.equals(BEST)) {
            return BestVersion.of(evaluated.evaluations()).getVersion();
        }
        if (asked.equals(LAST)) {
            return newest;
        }
        try {
            long version = Long.parseLong(asked);
            if (version < 0 || version > newest) {
                throw new NotFoundException("the run has versions 0 to " + newest + ", not " + version);
            }
            return version;
        } catch (NumberFormatException e) {
            throw mistake("--version must be a number, last or best: '" + asked + "'", e);
        }
    }

    private EvaluationConfig asked(MillraceConfig config) {
        EvaluationConfig ofRun = config.evaluation();
        try {
            return ofRun.with(prompts == null ? ofRun.prompts() : prompts, samples == null ? ofRun.samples() : samples);
        } catch (IllegalArgumentException e) {
            throw mistake("--" + e.getMessage(), e);
        }
    }

    private TaskSettings held(MillraceConfig config) {
        if (data == null) {
            config.requireHeldOutFiles();
            return config.task();
        }
        if (!(config.task() instanceof TextTask text)) {
            throw mistake("--data is given and the run's task is "
                    + config.task().task().name() + ", which generates its own prompts; leave --data out");
        }
        try {
            return text.holdingOut(
                    new JsonLines(data.toString()),
                    config.reward(),
                    config.generator().capacityTokens(),
                    config.admission().sampling().maxTokens());
        } catch (IllegalArgumentException e) {
            throw new ConfigException("--data: " + e.getMessage(), e);
        }
    }

    private Engine engine() {
        try {
            Engine engine = new Engine(Device.parse(device), 1);
            engine.requireUsable();
            return engine;
        } catch (IllegalArgumentException | InferenceException e) {
            throw new ConfigException("--device: " + e.getMessage(), e);
        }
    }

    /** All figures of one evaluation. */
    private static List<String> one(VersionEvaluation of) {
        List<String> lines = new ArrayList<>(Lines.labelled(
                "version",
                say(
                        "%d, weights %s; %s (%.12s), %d responses to each, temperature %s, top_p %s",
                        of.getVersion(),
                        of.getWeightsSha256(),
                        EvaluationText.prompts(of),
                        of.getDataSha256(),
                        of.getSamplesPerPrompt(),
                        of.getSampling().getTemperature(),
                        of.getSampling().getTopP())));
        lines.addAll(Lines.labelled("reward", EvaluationText.reward(of)));
        for (PassAtKEstimate estimate : of.getPassAtK()) {
            lines.addAll(Lines.labelled("pass@" + estimate.getK(), pass(estimate)));
        }
        lines.addAll(Lines.labelled("cut off", say("%.1f %% of the responses", 100 * of.getTruncatedShare())));
        lines.addAll(Lines.labelled(
                "lengths",
                of.getDifficulties().stream().map(EvaluateCommand::bin).collect(Collectors.joining("; "))));
        Double start = of.getStartLogProb();
        if (start != null) {
            lines.addAll(Lines.labelled("start", say("log-prob of its text under version 0 %.3f nats a token", start)));
        }
        if (of.getFailed() > 0) {
            lines.addAll(Lines.labelled(
                    "left out",
                    say(
                            "%d of %d responses, which could not be scored",
                            of.getFailed(), of.getFailed() + EvaluationRecords.responses(of))));
        }
        return lines;
    }

    private static String pass(PassAtKEstimate estimate) {
        String fit = estimate.getBetaBinomial() == null ? "" : say(", %.3f by a Beta fit", estimate.getBetaBinomial());
        return estimate.getUnbiased() == null
                ? say("extrapolated %.3f at the shares as they are%s", estimate.getBernoulli(), fit)
                : say("%.3f", estimate.getUnbiased()) + interval(estimate.getLow(), estimate.getHigh());
    }

    private static String interval(@Nullable Double low, @Nullable Double high) {
        return low == null || high == null ? "" : say(" (%.3f to %.3f)", low, high);
    }

    private static String bin(DifficultyLengths bin) {
        String which = bin.getTo() == 0
                ? "never solved"
                : bin.getFrom() == 1
                        ? "always solved"
                        : say(
                                bin.getTo() == 1 ? "over %.0f %% solved" : "%.0f to %.0f %% solved",
                                100 * bin.getFrom(),
                                100 * bin.getTo());
        return say(
                "%s, %d prompt%s: %.1f tokens, %.1f %% cut off",
                which,
                bin.getPrompts(),
                bin.getPrompts() == 1 ? "" : "s",
                bin.getTokensMean(),
                100 * bin.getTruncatedShare());
    }

    /** A line per version, the best marked; at least one evaluation. */
    private static List<String> all(Evaluations evaluations) {
        List<String> lines =
                new ArrayList<>(List.of("  version                 reward   pass@1   cut off   log-prob under start"));
        long best = evaluations.best().orElseThrow().getVersion();
        for (VersionEvaluation each : evaluations.onSamePrompts()) {
            Double pass = EvaluationRecords.passAt(each, 1).getUnbiased();
            Double start = each.getStartLogProb();
            lines.add(say(
                            "%9d%s %22s %8s %8.1f%% %22s",
                            each.getVersion(),
                            each.getVersion() == best ? "*" : " ",
                            EvaluationText.reward(each),
                            pass == null ? "-" : say("%.3f", pass),
                            100 * each.getTruncatedShare(),
                            start == null ? "-" : say("%.3f", start))
                    .stripTrailing());
        }
        VersionEvaluation last = evaluations.last().orElseThrow();
        lines.addAll(Lines.wrapped(
                "  ",
                say(
                        "* is the best; %s (%.12s), %d responses to each",
                        EvaluationText.prompts(last), last.getDataSha256(), last.getSamplesPerPrompt())));
        return lines;
    }

    private static String say(String pattern, Object... values) {
        return String.format(Locale.ROOT, pattern, values);
    }
}
