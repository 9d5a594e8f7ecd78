package dev.millrace.corrections.objective;

/** An objective whose ratio is always taken to the policy that sampled. */
interface BehaviorObjective extends Objective {

    @Override
    default Anchor anchor() {
        return Anchor.BEHAVIOR;
    }
}
