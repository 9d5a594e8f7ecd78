package dev.millrace.learner.step;

/** A divergence from the reference is configured and a trajectory has no log-probs of it. The learner stops: training on
 * without the leash would be another objective. */
public final class MissingReferenceException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    public MissingReferenceException(long batchId, String rolloutId) {
        super("batch " + batchId + ", rollout " + rolloutId
                + ": kl is configured with reference.kind=recorded, but this"
                + " trajectory has no reference log-probs; have the topology join reference scores, or let the learner compute them"
                + " itself (kl.reference.kind=version, kl.reference.version=0 for the initial weights)");
    }
}
