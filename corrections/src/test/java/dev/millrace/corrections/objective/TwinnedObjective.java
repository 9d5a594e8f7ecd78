package dev.millrace.corrections.objective;

/**
 * An objective with its naive twin.
 *
 * @param detaches whether the formula also stops a gradient outside the importance weights
 * @param sequenceAdvantages whether it is defined for one advantage per sequence only
 */
record TwinnedObjective(
        String name,
        Objective objective,
        LossAggregation aggregation,
        NaiveLoss twin,
        boolean detaches,
        boolean sequenceAdvantages) {
    ObjectiveResult evaluate(RandomInput in) {
        return objective.evaluate(in.input(), UpdateFacts.of(aggregation));
    }

    RandomInput input(long seed) {
        RandomInput in = RandomInput.of(seed, 0.4);
        return sequenceAdvantages ? in.withSequenceAdvantages() : in;
    }

    @Override
    public String toString() {
        return name;
    }
}
