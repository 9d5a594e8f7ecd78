package dev.millrace.cli;

import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Arrows between modules point one way. */
class ArchitectureTest {
    private static final JavaClasses OURS = new ClassFileImporter()
            .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
            .importPackages("dev.millrace");

    private static final String CORRECTIONS = "dev.millrace.corrections..";
    private static final String POLICY = "dev.millrace.policy..";
    private static final String SCHEMAS = "dev.millrace.schemas..";
    private static final String WEIGHTS = "dev.millrace.weights..";
    private static final String TOPOLOGY = "dev.millrace.topology..";
    private static final String STAGES = "dev.millrace.stages..";
    private static final String SCAN = "dev.millrace.scan..";

    /** What each module may see of ours, itself apart. */
    private static final Map<String, List<String>> MAY_SEE = Map.ofEntries(
            Map.entry(CORRECTIONS, List.of()),
            Map.entry(POLICY, List.of()),
            Map.entry(SCHEMAS, List.of()),
            Map.entry(WEIGHTS, List.of(SCHEMAS, POLICY)),
            Map.entry("dev.millrace.infra..", List.of(SCHEMAS)),
            Map.entry("dev.millrace.generator..", List.of(SCHEMAS, POLICY, WEIGHTS)),
            Map.entry("dev.millrace.scorer..", List.of(SCHEMAS, POLICY, WEIGHTS)),
            Map.entry(STAGES, List.of(SCHEMAS, CORRECTIONS)),
            Map.entry(TOPOLOGY, List.of(SCHEMAS, CORRECTIONS, STAGES)),
            Map.entry("dev.millrace.learner..", List.of(SCHEMAS, POLICY, WEIGHTS, CORRECTIONS, STAGES)),
            Map.entry("dev.millrace.archive..", List.of(SCHEMAS, POLICY, WEIGHTS, TOPOLOGY)),
            Map.entry(
                    "dev.millrace.replay..",
                    List.of(SCHEMAS, POLICY, WEIGHTS, CORRECTIONS, STAGES, TOPOLOGY, "dev.millrace.archive..")),
            Map.entry(
                    "dev.millrace.counterfactual..",
                    List.of(
                            SCHEMAS,
                            POLICY,
                            WEIGHTS,
                            CORRECTIONS,
                            STAGES,
                            TOPOLOGY,
                            "dev.millrace.archive..",
                            "dev.millrace.replay..",
                            "dev.millrace.learner..")),
            Map.entry(
                    "dev.millrace.loadtests..",
                    List.of(
                            SCHEMAS,
                            POLICY,
                            CORRECTIONS,
                            STAGES,
                            TOPOLOGY,
                            "dev.millrace.infra..",
                            "dev.millrace.generator..",
                            "dev.millrace.learner..",
                            "dev.millrace.archive..",
                            "dev.millrace.replay..")),
            Map.entry(SCAN, List.of(SCHEMAS)),
            Map.entry("dev.millrace.ledger..", List.of(SCHEMAS, SCAN)),
            Map.entry(
                    "dev.millrace.doctor..",
                    List.of(SCHEMAS, SCAN, CORRECTIONS, STAGES, TOPOLOGY, "dev.millrace.ledger..")),
            Map.entry("dev.millrace.trace..", List.of(SCHEMAS, SCAN, "dev.millrace.deadletters..")),
            Map.entry("dev.millrace.deadletters..", List.of(SCHEMAS, SCAN)));

    @Test
    void shouldKeepEveryModuleToWhatItMaySee() {
        MAY_SEE.forEach((module, seen) -> {
            String[] allowed = java.util.stream.Stream.concat(seen.stream(), java.util.stream.Stream.of(module))
                    .toArray(String[]::new);
            noClasses()
                    .that()
                    .resideInAPackage(module)
                    .should()
                    .dependOnClassesThat(resideInAnyPackage("dev.millrace..")
                            .and(com.tngtech.archunit.base.DescribedPredicate.not(resideInAnyPackage(allowed))))
                    .as(module + " may see of ours only " + seen)
                    .check(OURS);
        });
    }

    @Test
    void shouldKeepTheMathematicsToTheJdk() {
        classes()
                .that()
                .resideInAPackage(CORRECTIONS)
                .should()
                .onlyDependOnClassesThat(resideInAnyPackage(CORRECTIONS, "java.."))
                .check(OURS);
    }

    @Test
    void shouldKeepKafkaOutOfThePolicy() {
        noClasses()
                .that()
                .resideInAPackage(POLICY)
                .should()
                .dependOnClassesThat()
                .resideInAPackage("org.apache.kafka..")
                .check(OURS);
    }

    @Test
    void shouldHaveNoCyclesBetweenModules() {
        slices().matching("dev.millrace.(*)..").should().beFreeOfCycles().check(OURS);
    }

    @Test
    void shouldHaveNoPackageNamedAfterNothing() {
        noClasses()
                .that()
                .resideInAPackage("dev.millrace..")
                .should()
                .resideInAnyPackage("..util..", "..utils..", "..common..", "..impl..", "..helper..", "..misc..")
                .check(OURS);
    }
}
