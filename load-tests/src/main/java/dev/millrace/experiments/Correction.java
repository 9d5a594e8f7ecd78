package dev.millrace.experiments;

import dev.millrace.corrections.advantage.Grpo;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.AlgorithmBuilder;
import dev.millrace.corrections.algorithm.NamedAlgorithms;
import dev.millrace.corrections.algorithm.StalenessRules;
import dev.millrace.corrections.m2po.M2po;
import dev.millrace.corrections.objective.Anchor;
import dev.millrace.corrections.objective.DecoupledPpo;
import dev.millrace.corrections.objective.PpoClip;
import dev.millrace.corrections.vcpo.Ess;
import dev.millrace.corrections.vcpo.Opob;
import dev.millrace.corrections.weights.None;
import dev.millrace.corrections.weights.Sequence;
import dev.millrace.corrections.weights.Token;
import java.util.Locale;
import java.util.function.UnaryOperator;

/**
 * Corrections under comparison, each as the product's own algorithm. Batch, advantage, optimizer and learning rate are
 * shared, and none limits staleness.
 */
public enum Correction {
    /** {@code -A log π} */
    NONE("no correction", a -> a.weights(None.defaults())),
    /** Clipped to 1 ± 0.2 on current/behavior, dual clip at 3. */
    PPO_CLIP(
            "PPO clip",
            a -> a.weights(None.defaults())
                    .objective(new PpoClip(Anchor.BEHAVIOR, 0.2, 0.2, PpoClip.DEFAULT_CLIP_RATIO_C))),
    /** {@code -min(ρ, 2) A log π} per token. */
    TOKEN_TIS("token TIS", a -> a.weights(Token.defaults())),
    /** One weight per sequence, the product of its tokens' ratios. */
    SEQUENCE_TIS("sequence TIS", a -> a.weights(Sequence.defaults())),
    /** AReaL's: drops tokens with ρ above 5, weighs the others by ρ, clips to 1 ± 0.2 around the proximal policy. */
    DECOUPLED_PPO("decoupled PPO", a -> a.weights(new Token("1e-9_5.0", false)).objective(DecoupledPpo.defaults())),
    /** {@code -ρ A log π} after the second-moment mask at 0.04; truncation never binds. */
    M2PO("M2PO", a -> a.weights(new Token("1e8", false)).masks(M2po.defaults())),
    /** Sequence TIS with step {@code sqrt(ESS ratio)} and the off-policy optimal baseline. */
    VCPO("VCPO", Correction::varianceControlled),
    /** The second-moment mask, then VCPO. */
    M2PO_VCPO("M2PO+VCPO", a -> varianceControlled(a).masks(M2po.defaults()));

    private final String title;
    private final Algorithm algorithm;

    Correction(String title, UnaryOperator<AlgorithmBuilder> changes) {
        this.title = title;
        this.algorithm = NamedAlgorithms.of("none")
                .with(a -> changes.apply(a.variant(title)
                        .advantage(Grpo.defaults())
                        .staleness(new StalenessRules(Long.MAX_VALUE, 0, 0))));
    }

    private static AlgorithmBuilder varianceControlled(AlgorithmBuilder a) {
        return a.weights(Sequence.defaults()).advantage(Opob.defaults()).ess(Ess.defaults());
    }

    String title() {
        return title;
    }

    String key() {
        return name().toLowerCase(Locale.ROOT);
    }

    Algorithm algorithm() {
        return algorithm;
    }
}
