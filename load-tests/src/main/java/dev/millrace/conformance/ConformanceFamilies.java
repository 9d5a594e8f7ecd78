package dev.millrace.conformance;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** The golden families Millrace answers, by name. */
public final class ConformanceFamilies {
    private final Map<String, ConformanceFamily> byName = new LinkedHashMap<>();

    public ConformanceFamilies(List<ConformanceFamily> families) {
        for (ConformanceFamily family : families) {
            if (byName.put(family.name(), family) != null) {
                throw new IllegalArgumentException("two classes answer the family " + family.name());
            }
        }
    }

    /** Every family of this build, one line each. */
    public static ConformanceFamilies all() {
        return new ConformanceFamilies(List.of(
                new AdvantageFamily(),
                new ArealDecoupledLossFamily(),
                new ArealProxApproxFamily(),
                new ArealRejectionFamily(),
                new KlControllerFamily(),
                new KlFamily(),
                new M2poFamily(),
                new OffPolicyMetricsFamily(),
                new PolicyLossFamily(),
                new PresetsFamily(),
                new RolloutCorrectionFamily(),
                new StalenessCapacityFamily(),
                new VcpoFamily()));
    }

    Optional<ConformanceFamily> named(String name) {
        return Optional.ofNullable(byName.get(name));
    }

    public Set<String> names() {
        return byName.keySet();
    }
}
