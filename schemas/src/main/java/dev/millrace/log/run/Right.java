package dev.millrace.log.run;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourceType;

/**
 * Operations on resources of a cluster, as an ACL allows them.
 *
 * @param type {@code TOPIC}, {@code GROUP} or {@code TRANSACTIONAL_ID}
 * @param pattern {@code LITERAL} or {@code PREFIXED}, for all names
 * @param names at least one
 * @param operations at least one
 */
public record Right(ResourceType type, PatternType pattern, List<String> names, List<AclOperation> operations) {
    /** Account in a printed command where the real one is not known. */
    public static final String ANYBODY = "User:ACCOUNT";

    public Right {
        names = List.copyOf(names);
        operations = List.copyOf(operations);
        if (names.isEmpty() || operations.isEmpty()) {
            throw new IllegalArgumentException("a right has a name and an operation: " + names + ", " + operations);
        }
    }

    public static Right on(ResourceType type, String name, AclOperation... operations) {
        return new Right(type, PatternType.LITERAL, List.of(name), List.of(operations));
    }

    /** On every resource whose name begins so. */
    public static Right under(ResourceType type, String prefix, AclOperation... operations) {
        return new Right(type, PatternType.PREFIXED, List.of(prefix), List.of(operations));
    }

    /** Each operation on each resource by itself. */
    public List<Right> single() {
        return names.stream()
                .flatMap(name -> operations.stream()
                        .map(operation -> new Right(type, pattern, List.of(name), List.of(operation))))
                .toList();
    }

    /** As few as say the same. */
    public static List<Right> merged(Collection<Right> rights) {
        Map<Right, Set<AclOperation>> byResource = new LinkedHashMap<>();
        rights.stream()
                .flatMap(right -> right.single().stream())
                .forEach(right -> byResource
                        .computeIfAbsent(
                                new Right(right.type, right.pattern, right.names, List.of(AclOperation.ANY)),
                                unseen -> new LinkedHashSet<>())
                        .addAll(right.operations));
        Map<Right, List<String>> byOperations = new LinkedHashMap<>();
        byResource.forEach((on, operations) -> byOperations
                .computeIfAbsent(
                        new Right(on.type, on.pattern, List.of("*"), List.copyOf(operations)),
                        unseen -> new ArrayList<>())
                .addAll(on.names));
        List<Right> merged = new ArrayList<>();
        byOperations.forEach((of, names) -> merged.add(new Right(of.type, of.pattern, names, of.operations)));
        return merged;
    }

    /** The options of {@code kafka-acls} that name resources and operations. */
    public String options() {
        String option = type == ResourceType.TRANSACTIONAL_ID ? "--transactional-id " : "--" + word() + " ";
        return operations.stream()
                        .map(operation -> "--operation " + named(operation))
                        .collect(Collectors.joining(" "))
                + names.stream().map(name -> " " + option + name).collect(Collectors.joining())
                + (pattern == PatternType.PREFIXED ? " --resource-pattern-type prefixed" : "");
    }

    /** The command that grants it, on one line. */
    public String command(String bootstrapServers, String principal) {
        return "kafka-acls --bootstrap-server " + bootstrapServers + " --add --allow-principal " + principal + " "
                + options();
    }

    /** That it is missing and how it is granted, as a clause for a message. */
    public String lacking(String bootstrapServers) {
        return "the account lacks " + this + "; grant it: " + command(bootstrapServers, ANYBODY);
    }

    /** An operation as Kafka's tools and Strimzi spell it: {@code DescribeConfigs}. */
    public static String named(AclOperation operation) {
        return Arrays.stream(operation.name().split("_"))
                .map(word -> word.charAt(0) + word.substring(1).toLowerCase(Locale.ROOT))
                .collect(Collectors.joining());
    }

    private String word() {
        return type.name().toLowerCase(Locale.ROOT).replace('_', ' ');
    }

    /** As a sentence names it: {@code READ on topics millrace.r1.*}. */
    @Override
    public String toString() {
        boolean isMany = names.size() > 1 || pattern == PatternType.PREFIXED;
        return operations.stream().map(AclOperation::name).collect(Collectors.joining(" and "))
                + " on " + word() + (isMany ? "s " : " ")
                + names.stream()
                        .map(name -> pattern == PatternType.PREFIXED ? name + "*" : name)
                        .collect(Collectors.joining(", "));
    }
}
