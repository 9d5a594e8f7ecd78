package dev.millrace.learner.objective;

import dev.millrace.corrections.control.ControlState;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.ObjectiveResult;
import dev.millrace.stages.ComparedPolicies;
import java.util.Optional;

/**
 * The loss. Each kind is an objective of {@code dev.millrace.corrections.objective}, whose class has the formula and its
 * source; a kind has the settings that this objective reads and no others. The order of the kinds below is theirs in the
 * configuration's reference.
 *
 * <p>In all kinds that take them, the batch's importance weights multiply a token's loss and are not differentiated.
 */
public sealed interface ObjectiveConfig
        permits ReinforceConfig,
                PpoClipConfig,
                DecoupledPpoConfig,
                GspoConfig,
                GspoTokenConfig,
                GmpoConfig,
                DppoTvConfig,
                DppoKlConfig,
                SapoConfig,
                SequenceSapoConfig,
                CispoConfig,
                DroConfig,
                KlCovConfig,
                ClipCovConfig,
                M2poConfig,
                OaplConfig,
                R2vpoConfig,
                QuatroConfig,
                ToprConfig,
                AspoConfig,
                DispoConfig,
                BypassPpoClipConfig,
                BypassReinforceConfig {

    /** How token losses, the entropy bonus and a KL term become one number. */
    AggregationConfig aggregation();

    /** The objective of one update; made anew for each, since denominators differ. */
    Objective objective(UpdateFacts facts);

    /** The policy that the objective's ratio is taken to. */
    default Anchor anchor() {
        return Anchor.PROXIMAL;
    }

    /** What the importance weights beside the loss have to compare; empty if the loss corrects by itself and takes none. */
    default Optional<ComparedPolicies> weightsCompare() {
        return anchor().weightsCompare();
    }

    /**
     * True if the loss is linear in the current log-probs: its gradient is then known without a forward pass, and it has no
     * trust region, so it is right for one step on a batch and no more.
     */
    default boolean linear() {
        return false;
    }

    /** True if a decision is about whole groups, so that no group may be cut into minibatches. */
    default boolean needsWholeGroups() {
        return false;
    }

    /** What is to be remembered after an update with this result; objectives without a memory change nothing. */
    default ControlState remembered(ControlState controls, ObjectiveResult result) {
        return controls;
    }

    /** True if the advantages have to be those of the KL-regularised optimum. */
    default boolean regressesOnOptimalAdvantage() {
        return false;
    }

    /** The policy gradient under the batch's importance weights. */
    static ObjectiveConfig defaults() {
        return ReinforceConfig.defaults();
    }
}
