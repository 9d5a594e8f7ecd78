package dev.millrace.corrections.objective;

import java.util.Arrays;
import java.util.Optional;

/**
 * An objective among the settings that decide whether it can do anything: which of them make its trust region inert, and
 * which leave the plain policy gradient on stale data without anybody having asked for it.
 *
 * @param startsAtProximal whether the proximal policy is the one that the step starts from, recomputed at its start
 * @param updates optimizer steps per batch, over all passes
 * @param weighs whether importance weights are made
 * @param masks whether anything is masked or rejected by how far policies are apart
 * @param masksSecondMoment whether the second-moment mask is among that
 */
public record ObjectiveInForce(
        Objective objective,
        String kind,
        boolean startsAtProximal,
        long updates,
        boolean weighs,
        boolean masks,
        boolean masksSecondMoment) {

    /**
     * Why the objective's trust region cannot act, as a sentence with the keys that would make it; empty if it can, or the
     * objective has none.
     */
    public Optional<String> whyItCannotAct() {
        boolean ownAnchor = startsAtProximal && updates == 1 && objective.anchor() == Anchor.PROXIMAL;
        if (!ownAnchor || objective.linear() || !objective.isPolicyGradientAtAnchor()) {
            return Optional.empty();
        }
        return Optional.of(
                "objective " + kind + " cannot act: with minibatches=1 and epochs=1 the only update starts from"
                        + " the very policy that the objective is anchored at, where it is the plain policy gradient (reinforce);"
                        + " to let it act, set minibatches or epochs above 1, or mode to interpolated"
                        + (hasAnchorKey() ? ", or objective.anchor to old" : ""));
    }

    /** What is to be refused, as a sentence with the way out; empty if nothing is. */
    public Optional<String> refusal() {
        if (objective instanceof DecoupledPpo && !weighs) {
            return Optional.of(
                    "objective " + kind + " is decoupled by importance weights of proximal over behavior, and"
                            + " weights.kind is none, so nothing would correct for the age of the data; set weights.kind to token or"
                            + " sequence, or choose objective.kind=ppo_clip with anchor=old, whose clip bounds age itself");
        }
        if (objective instanceof M2poSurrogate && !masksSecondMoment) {
            return Optional.of(
                    "objective " + kind + " clips no ratio, since the second-moment mask is its trust region, and"
                            + " there is none among the masks; add the mask m2po, or choose objective.kind=ppo_clip");
        }
        if (objective instanceof BypassReinforce bypass
                && bypass.rolloutIs().isEmpty()
                && bypass.rolloutRs().isEmpty()) {
            return Optional.of(
                    "objective " + kind + " corrects by its own weights and rejections, and both rollout_is and"
                            + " rollout_rs are empty, so it is REINFORCE on stale data, uncorrected; set one of them, or choose"
                            + " objective.kind=reinforce if that is wanted");
        }
        if (!weighs && !masks && whyItCannotAct().isPresent()) {
            return Optional.of(
                    whyItCannotAct().get() + "; and with neither weights nor masks this would be REINFORCE on"
                            + " stale data, uncorrected; if that is wanted, choose objective.kind=reinforce");
        }
        return Optional.empty();
    }

    private boolean hasAnchorKey() {
        return objective.getClass().isRecord()
                && Arrays.stream(objective.getClass().getRecordComponents())
                        .anyMatch(component -> component.getType() == Anchor.class);
    }
}
