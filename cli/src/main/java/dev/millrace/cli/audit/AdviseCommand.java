package dev.millrace.cli.audit;

import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.api.catalogue.Catalogue;
import dev.millrace.cli.ScreenCommand;
import dev.millrace.cli.config.ConfigOptions;
import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.Mode;
import dev.millrace.corrections.algorithm.RoutingReplay;
import dev.millrace.corrections.filter.ZeroAdvantageMask;
import dev.millrace.corrections.objective.Anchor;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.stage.MaskStage;
import dev.millrace.corrections.stage.Stage;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.vcpo.Ess;
import dev.millrace.corrections.weights.TurnProductWeights;
import dev.millrace.corrections.weights.TurnWeights;
import dev.millrace.generator.environment.FixedAnswer;
import dev.millrace.generator.environment.GuessPrompts;
import dev.millrace.generator.environment.text.TextTask;
import dev.millrace.generator.staleness.SamplingConfig;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.topology.batch.GroupsConfig.ZeroVariance;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.function.Predicate;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code millrace doctor advise}: which corrections a configuration needs, and which of its own cannot act. */
@Command(
        name = "advise",
        description = "Lists the corrections that a configuration needs and those that cannot act, each with reason and"
                + " key: engine, precision, sampling, staleness, updates per batch, experts, turns. "
                + "Starts nothing. 'millrace doctor' judges the steps of a run.",
        footer = {
            "",
            "millrace doctor advise",
            "millrace doctor advise --config my.yaml",
            "millrace doctor advise --set admission.eta=8 --set algorithm.variant=gspo",
            "",
            "Exit codes: 0 nothing is missing; 4 a correction is missing; 1 a failure; 2 a mistake in the configuration."
        })
public final class AdviseCommand extends ScreenCommand {
    @Mixin
    private ConfigOptions configuration;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    @Override
    public Integer call() {
        List<Advice> found = new Adviser(configuration.over(ConfigTree.empty()).resolve()).advice();
        boolean complete = found.stream().noneMatch(advice -> advice.verdict() == Verdict.NEEDED);
        if (json) {
            var tree = new ObjectMapper().createObjectNode().put("complete", complete);
            var array = tree.putArray("advice");
            found.forEach(advice -> array.addObject()
                    .put("verdict", advice.verdict().label())
                    .put("subject", advice.subject())
                    .put("sentence", advice.sentence())
                    .put("key", advice.key()));
            out().println(tree.toPrettyString());
        } else {
            for (Advice advice : found) {
                labelled(advice.verdict().label(), advice.subject() + ": " + advice.sentence());
                if (!advice.key().isEmpty()) {
                    labelled("", "-> " + advice.key());
                }
            }
            out().println();
            out().println(complete ? "No correction is missing." : "A correction is missing.");
        }
        return complete ? 0 : DoctorCommand.ATTENTION;
    }

    /** Verdicts on a source of off-policy data, most important first. */
    enum Verdict {
        /** Uncorrected. */
        NEEDED,
        /** A setting without effect under the others. */
        IDLE,
        /** Corrected, but another correction is likely better. */
        CONSIDER,
        /** Corrected or absent. */
        FINE;

        String label() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /**
     * One sentence about a configuration.
     *
     * @param key what to set; empty if nothing is needed, or the sentence has it
     */
    record Advice(Verdict verdict, String subject, String sentence, String key) {}

    /**
     * Rules after the decision tree of zoeyli.com, "Off-Policy Corrections in LLM RL" (March 2026): engine, lag,
     * experts and turns each need a correction.
     */
    static final class Adviser {
        /** From here on the tree replays the generator's experts, below it the learner's. */
        private static final int MANY_UPDATES = 4;

        /** The largest eta at which AReaL's corrected runs match synchronous ones (arXiv 2505.24298). */
        private static final int FRESH = 8;

        private static final Set<StageInput> COMPARED =
                Set.of(StageInput.OLD, StageInput.PROXIMAL, StageInput.DISTRIBUTIONS);

        private final MillraceConfig config;
        private final Algorithm algorithm;
        private final long updates;
        private final int eta;
        private final boolean otherEngine;
        private final String cut;
        private final List<Advice> found = new ArrayList<>();

        Adviser(MillraceConfig config) {
            this.config = config;
            this.algorithm = config.algorithm();
            this.updates = (long) algorithm.minibatches() * algorithm.epochs();
            this.eta = config.admission().eta();
            this.otherEngine = config.engine().isRemote() || config.generator().precision() != Precision.F32;
            SamplingConfig sampling = config.admission().sampling();
            this.cut = sampling.topK() > 0
                    ? "top_k=" + sampling.topK()
                    : sampling.topP() < 1
                            ? "top_p=" + sampling.topP()
                            : sampling.minP() > 0 ? "min_p=" + sampling.minP() : "";
        }

        List<Advice> advice() {
            engine();
            staleness();
            sampling();
            updates();
            experts();
            turns();
            groups();
            ratios();
            found.sort(Comparator.comparing(Advice::verdict));
            return List.copyOf(found);
        }

        private void say(Verdict verdict, String subject, String sentence, String key) {
            found.add(new Advice(verdict, subject, sentence, key));
        }

        private void engine() {
            if (!otherEngine) {
                say(
                        Verdict.FINE,
                        "engine",
                        "the generator samples with the scorer's arithmetic (engine.kind=own, generator.precision=f32)",
                        "");
                return;
            }
            String differs = config.engine().isRemote()
                    ? "engine.kind=" + config.engine().kind().name().toLowerCase(Locale.ROOT)
                            + " samples with another engine's arithmetic"
                    : "generator.precision="
                            + config.generator().precision().name().toLowerCase(Locale.ROOT)
                            + " samples in another precision than scorer and learner, which use f32";
            corrected(
                    "engine",
                    differs,
                    corrects(RatioKind.ENGINE_MISMATCH),
                    "'./millrace doctor mismatch' measures the gap");
        }

        private void staleness() {
            if (eta == 0) {
                say(Verdict.FINE, "staleness", "admission.eta=0: the version that samples is the one that trains", "");
                return;
            }
            String lag = "admission.eta=" + eta + " lets " + eta + (eta == 1 ? " version" : " versions")
                    + " pass between a token and its step";
            corrected("staleness", lag, corrects(RatioKind.STALENESS), "or admission.eta=0");
            if (eta > FRESH) {
                say(
                        Verdict.CONSIDER,
                        "staleness",
                        lag + ", and published results match synchronous runs up to " + FRESH,
                        "admission.eta=" + FRESH);
            }
            if (algorithm.mode() == Mode.RECORDED) {
                say(
                        Verdict.CONSIDER,
                        "staleness",
                        "algorithm.mode=recorded compares with the version that scored; no ratio covers the"
                                + " versions that pass while a batch waits",
                        "algorithm.mode=decoupled");
            }
        }

        private void corrected(String subject, String why, Optional<String> by, String more) {
            if (by.isPresent()) {
                say(Verdict.FINE, subject, why + "; " + by.get() + " corrects for it", "");
            } else {
                say(
                        Verdict.NEEDED,
                        subject,
                        why
                                + ", and neither weights, rejection, masks nor the objective's ratio compare the two policies",
                        "algorithm.weights.kind=token, or algorithm.rejection.rollout_rs=seq_mean_k1 with"
                                + " rollout_rs_threshold=0.99_1.01; " + more);
            }
        }

        /** Returns the parts of the algorithm that compare the policies on both sides of this gap. */
        private Optional<String> corrects(RatioKind gap) {
            RatioKind other = gap == RatioKind.STALENESS ? RatioKind.ENGINE_MISMATCH : RatioKind.STALENESS;
            if (algorithm.objective().weightsCompare().isEmpty()) {
                return Optional.of("algorithm.objective.kind=" + kind(algorithm.objective())
                        + ", by its own ratio to the behavior policy,");
            }
            if (algorithm.weightsCompare().filter(Predicate.not(other::equals)).isPresent()) {
                return Optional.of("algorithm.weights.kind=" + kind(algorithm.weights()));
            }
            if (gap == RatioKind.STALENESS && algorithm.objective().anchor() == Anchor.OLD) {
                return Optional.of("algorithm.objective.kind=" + kind(algorithm.objective())
                        + ", anchored at the version that sampled,");
            }
            if (algorithm.rejection().rejects()
                    && algorithm.rejection().compare().kind() != other) {
                return Optional.of("algorithm.rejection.rollout_rs="
                        + algorithm.rejection().rolloutRs());
            }
            return algorithm.masks().stream()
                    .filter(mask -> mask.inputs().contains(StageInput.BEHAVIOR)
                            || mask.inputs().contains(StageInput.DISTRIBUTIONS))
                    .filter(Adviser::compares)
                    .findFirst()
                    .map(mask -> "the mask " + kind(mask));
        }

        /** The part's kind as a configuration names it. */
        private static String kind(Object part) {
            return Catalogue.current().nameOf(part.getClass()).orElseThrow();
        }

        private static boolean compares(Stage stage) {
            return stage.inputs().stream().anyMatch(COMPARED::contains);
        }

        private void sampling() {
            if (cut.isEmpty()) {
                say(Verdict.FINE, "sampling", "every token can be sampled", "");
            } else if (config.admission().sampling().keepSamplingMask()) {
                say(
                        Verdict.FINE,
                        "sampling",
                        "admission.sampling." + cut + " truncates the vocabulary, and keep_sampling_mask compares"
                                + " all policies over the kept tokens",
                        "");
            } else {
                say(
                        Verdict.NEEDED,
                        "sampling",
                        "admission.sampling." + cut + " truncates the vocabulary, and scorer and learner compare"
                                + " over the whole vocabulary, not the sampled distribution",
                        "admission.sampling.keep_sampling_mask=true, or no truncation");
            }
        }

        private void updates() {
            Optional<String> idle = algorithm.whyObjectiveCannotAct();
            idle.ifPresent(why -> say(Verdict.IDLE, "objective", why, ""));
            algorithm.doubts().stream()
                    .filter(doubt -> !idle.equals(Optional.of(doubt)))
                    .forEach(doubt -> say(Verdict.NEEDED, "algorithm", doubt, ""));
            if (updates > 1) {
                say(
                        Verdict.FINE,
                        "updates",
                        updates + " updates per batch (algorithm.minibatches=" + algorithm.minibatches() + ", epochs="
                                + algorithm.epochs() + ") under algorithm.objective.kind="
                                + kind(algorithm.objective()),
                        "");
            } else if (idle.isEmpty()) {
                say(Verdict.FINE, "updates", "one update per batch needs no trust region", "");
            }
            if (algorithm.rejection().rolloutRs().contains("seq_sum_")) {
                say(
                        Verdict.CONSIDER,
                        "rejection",
                        "algorithm.rejection.rollout_rs="
                                + algorithm.rejection().rolloutRs()
                                + " sums over an answer, which rejects long answers for their length",
                        "algorithm.rejection.rollout_rs=seq_mean_k1 or seq_mean_k3");
            }
        }

        private void experts() {
            if (!config.model().traits().experts().present()) {
                say(Verdict.FINE, "experts", "the model is dense: there is no routing to replay", "");
                return;
            }
            RoutingReplay replay = algorithm.routingReplay();
            boolean recordable =
                    !config.engine().isRemote() && !config.gateway().enabled();
            String generator = "algorithm.routing_replay=generator";
            if (replay == RoutingReplay.GENERATOR || replay == RoutingReplay.LEARNER && updates < MANY_UPDATES) {
                say(
                        Verdict.FINE,
                        "experts",
                        "algorithm.routing_replay=" + replay.name().toLowerCase(Locale.ROOT)
                                + " keeps ratios free of changed routes",
                        "");
            } else if (replay == RoutingReplay.LEARNER) {
                say(
                        Verdict.CONSIDER,
                        "experts",
                        updates + " updates per batch move the routes far from the sampling ones",
                        recordable ? generator : "fewer algorithm.minibatches or epochs");
            } else if (updates == 1) {
                say(
                        eta > 0 || otherEngine ? Verdict.CONSIDER : Verdict.FINE,
                        "experts",
                        "one update per batch needs no replay"
                                + (eta > 0 || otherEngine
                                        ? ", but sampler and learner may route the same token differently"
                                        : ""),
                        (eta > 0 || otherEngine) && recordable ? generator : "");
            } else {
                boolean bySequence = algorithm.objective().unit() == CorrectionUnit.SEQUENCE;
                say(
                        bySequence ? Verdict.CONSIDER : Verdict.NEEDED,
                        "experts",
                        "algorithm.routing_replay=none: in " + updates
                                + " updates per batch a token can change its experts, which no weight corrects"
                                + (bySequence ? "; a ratio per sequence suffers less" : ""),
                        updates >= MANY_UPDATES && recordable ? generator : "algorithm.routing_replay=learner");
            }
        }

        private boolean isOneTurn() {
            return !config.gateway().enabled()
                    && (config.task() instanceof TextTask text
                            ? text.isOneTurn()
                            : config.task() instanceof GuessPrompts guess
                                    ? guess.turns() == 1
                                    : config.task().task().environment() instanceof FixedAnswer);
        }

        private void turns() {
            boolean byTurn =
                    algorithm.weights() instanceof TurnWeights || algorithm.weights() instanceof TurnProductWeights;
            if (isOneTurn()) {
                say(
                        byTurn ? Verdict.IDLE : Verdict.FINE,
                        "turns",
                        "an answer is one turn"
                                + (byTurn
                                        ? ", so algorithm.weights.kind=" + kind(algorithm.weights())
                                                + " equals the sequence's weights"
                                        : ""),
                        byTurn
                                ? "algorithm.weights.kind="
                                        + (algorithm.weights() instanceof TurnWeights
                                                ? "geometric_sequence"
                                                : "sequence")
                                : "");
            } else if (algorithm.weightsCompare().isPresent()
                    && algorithm.weights().unit() == CorrectionUnit.SEQUENCE) {
                say(
                        Verdict.CONSIDER,
                        "turns",
                        "an answer can have several turns, and algorithm.weights.kind="
                                + kind(algorithm.weights())
                                + " applies one turn's ratio to all of them",
                        "algorithm.weights.kind=turn_geometric");
            } else {
                say(
                        Verdict.FINE,
                        "turns",
                        "an answer can have several turns; tokens of the environment are context and never trained on",
                        "");
            }
        }

        private void groups() {
            if (config.topology().groups().zeroVariance() == ZeroVariance.KEEP) {
                return;
            }
            String without = "topology.groups.zero_variance="
                    + config.topology().groups().zeroVariance().name().toLowerCase(Locale.ROOT)
                    + " removes groups with equal rewards, ";
            for (MaskStage mask : algorithm.masks()) {
                if (mask instanceof ZeroAdvantageMask) {
                    say(Verdict.IDLE, "masks", without + "which the mask " + kind(mask) + " would mask", "");
                }
            }
        }

        /** If sampler and learner are the same policy at the only update, comparing corrections find no difference. */
        private void ratios() {
            boolean cutUnseen = !cut.isEmpty() && !config.admission().sampling().keepSamplingMask();
            if (eta > 0 || otherEngine || cutUnseen) {
                return;
            }
            List<String> idle = new ArrayList<>();
            if (algorithm.weightsCompare().isPresent()) {
                idle.add("weights.kind=" + kind(algorithm.weights()));
            }
            if (algorithm.rejection().rejects()) {
                idle.add("rejection.rollout_rs=" + algorithm.rejection().rolloutRs());
            }
            algorithm.masks().stream()
                    .filter(Adviser::compares)
                    .map(mask -> "the mask " + kind(mask))
                    .forEach(idle::add);
            if (algorithm.ess().rule() != Ess.Rule.NONE) {
                idle.add("ess.rule=" + algorithm.ess().rule().name().toLowerCase(Locale.ROOT));
            }
            if (algorithm.staleness().halfLifeVersions() > 0) {
                idle.add("staleness.half_life_versions");
            }
            if (!idle.isEmpty()) {
                say(
                        Verdict.IDLE,
                        "ratios",
                        "sampler and learner are the same policy where a step starts (admission.eta=0, engine.kind=own,"
                                + " generator.precision=f32), so every ratio is 1 up to rounding, and these change nothing: "
                                + String.join(", ", idle),
                        "admission.eta above 0, or leave them out");
            }
        }
    }
}
