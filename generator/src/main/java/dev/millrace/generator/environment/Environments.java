package dev.millrace.generator.environment;

import dev.millrace.api.environment.Environment;
import dev.millrace.generator.environment.answer.FixedAnswer;
import dev.millrace.generator.environment.guess.Guess;
import java.util.Collection;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;

/** The environments a generator can serve, by name. Immutable and thread-safe. */
public final class Environments {
    private final SortedMap<String, Environment> byName = new TreeMap<>();

    /** @throws IllegalArgumentException if two have the same name */
    public Environments(Collection<? extends Environment> environments) {
        for (Environment environment : environments) {
            Environment other = byName.putIfAbsent(environment.name(), environment);
            if (other != null) {
                throw new IllegalArgumentException("two environments are named " + environment.name() + ": "
                        + other.getClass().getName() + " and "
                        + environment.getClass().getName());
            }
        }
    }

    /** Those that come with Millrace. */
    public static Environments builtIn() {
        return new Environments(List.of(new FixedAnswer(), new Guess()));
    }

    /** All of them, by name. */
    public Collection<Environment> all() {
        return List.copyOf(byName.values());
    }

    /** @throws IllegalArgumentException naming the nearest known one if there is none of that name */
    public Environment named(String name) {
        Environment environment = byName.get(name);
        if (environment == null) {
            throw new IllegalArgumentException("unknown environment: " + NearestName.sentence(name, byName.keySet()));
        }
        return environment;
    }
}
