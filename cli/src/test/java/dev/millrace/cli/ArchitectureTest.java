package dev.millrace.cli;

import static com.tngtech.archunit.base.DescribedPredicate.not;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.Dependency;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaPackage;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.avro.specific.AvroGenerated;
import org.jspecify.annotations.NullMarked;
import org.jspecify.annotations.NullUnmarked;
import org.junit.jupiter.api.Test;

/** Arrows between modules point one way. */
class ArchitectureTest {
    private static final JavaClasses OURS = new ClassFileImporter()
            .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
            .withImportOption(location -> !location.contains("-tests.jar"))
            .importPackages("dev.millrace");

    private static final String API = "dev.millrace.api..";
    private static final String CORRECTIONS = "dev.millrace.corrections..";
    private static final String POLICY = "dev.millrace.policy..";
    private static final String REPORT = "dev.millrace.report..";
    private static final String CONTRACTS = "dev.millrace.schemas..";
    private static final String LOG = "dev.millrace.log..";
    private static final String INFRA = "dev.millrace.infra..";
    private static final String WEIGHTS = "dev.millrace.weights..";
    private static final String STAGES = "dev.millrace.stages..";
    private static final String TOPOLOGY = "dev.millrace.topology..";
    private static final String AUDIT = "dev.millrace.audit..";
    private static final String LEARNER = "dev.millrace.learner..";
    private static final String REPLAY = "dev.millrace.replay..";
    private static final String GENERATOR = "dev.millrace.generator..";
    private static final String GATEWAY = "dev.millrace.gateway..";
    private static final String SCORER = "dev.millrace.scorer..";
    private static final String RUNTIME = "dev.millrace.runtime..";
    private static final String VIEW = "dev.millrace.view..";
    private static final String WORKLOADS = "dev.millrace.workloads..";
    private static final String EXPERIMENTS = "dev.millrace.experiments..";
    private static final String CONFORMANCE = "dev.millrace.conformance..";

    /** What each module may see of ours, itself apart. The command line sees all of them, and none sees it. */
    private static final Map<String, List<String>> MAY_SEE = Map.ofEntries(
            Map.entry(API, List.of()),
            Map.entry(REPORT, List.of()),
            Map.entry(CORRECTIONS, List.of()),
            Map.entry(CONTRACTS, List.of()),
            Map.entry(INFRA, List.of()),
            Map.entry(POLICY, List.of(API)),
            Map.entry(LOG, List.of(CONTRACTS)),
            Map.entry(WEIGHTS, List.of(CONTRACTS, LOG, POLICY)),
            Map.entry(STAGES, List.of(API, CONTRACTS, CORRECTIONS)),
            Map.entry(TOPOLOGY, List.of(API, CONTRACTS, LOG, CORRECTIONS, STAGES)),
            Map.entry(AUDIT, List.of(API, CONTRACTS, LOG, CORRECTIONS, STAGES)),
            Map.entry(LEARNER, List.of(API, CONTRACTS, LOG, POLICY, WEIGHTS, CORRECTIONS, STAGES)),
            Map.entry(REPLAY, List.of(REPORT, CONTRACTS, LOG, POLICY, WEIGHTS, CORRECTIONS, STAGES, TOPOLOGY, LEARNER)),
            Map.entry(GENERATOR, List.of(API, CONTRACTS, LOG, POLICY, WEIGHTS)),
            Map.entry(GATEWAY, List.of(API, CONTRACTS, LOG, POLICY, WEIGHTS, GENERATOR)),
            Map.entry(SCORER, List.of(CONTRACTS, LOG, POLICY, WEIGHTS)),
            Map.entry(
                    RUNTIME,
                    List.of(
                            API,
                            REPORT,
                            CONTRACTS,
                            LOG,
                            INFRA,
                            POLICY,
                            WEIGHTS,
                            CORRECTIONS,
                            STAGES,
                            TOPOLOGY,
                            LEARNER,
                            REPLAY,
                            AUDIT,
                            GENERATOR,
                            GATEWAY,
                            SCORER)),
            Map.entry(
                    VIEW,
                    List.of(
                            API,
                            REPORT,
                            CONTRACTS,
                            LOG,
                            POLICY,
                            CORRECTIONS,
                            STAGES,
                            LEARNER,
                            AUDIT,
                            REPLAY,
                            GENERATOR,
                            GATEWAY,
                            RUNTIME)),
            Map.entry(
                    WORKLOADS,
                    List.of(
                            API,
                            REPORT,
                            CONTRACTS,
                            LOG,
                            INFRA,
                            POLICY,
                            WEIGHTS,
                            CORRECTIONS,
                            STAGES,
                            TOPOLOGY,
                            LEARNER,
                            REPLAY,
                            GENERATOR,
                            GATEWAY,
                            RUNTIME)),
            Map.entry(
                    EXPERIMENTS,
                    List.of(
                            API,
                            REPORT,
                            CONTRACTS,
                            LOG,
                            POLICY,
                            CORRECTIONS,
                            STAGES,
                            TOPOLOGY,
                            LEARNER,
                            REPLAY,
                            GENERATOR,
                            RUNTIME)),
            Map.entry(CONFORMANCE, List.of(REPORT, CORRECTIONS)));

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
                .onlyDependOnClassesThat(resideInAnyPackage(CORRECTIONS, "java..", "org.jspecify.annotations.."))
                .check(OURS);
    }

    /** From the kinds of its keys, the configuration, a step, the doctor: all but what only measures or compares. */
    @Test
    void shouldReachTheWholeMathematicsFromARun() {
        Deque<JavaClass> open = new ArrayDeque<>(OURS.that(not(
                resideInAnyPackage(CORRECTIONS, EXPERIMENTS, WORKLOADS, CONFORMANCE, "dev.millrace.cli.measure.."))));
        Set<JavaClass> seen = new HashSet<>(open);
        Set<String> reached = new HashSet<>();
        while (!open.isEmpty()) {
            open.remove().getDirectDependenciesFromSelf().stream()
                    .map(Dependency::getTargetClass)
                    .filter(resideInAnyPackage(CORRECTIONS))
                    .filter(seen::add)
                    .forEach(each -> {
                        reached.add(topLevel(each));
                        open.add(each);
                    });
        }
        assertThat(OURS.that(resideInAnyPackage(CORRECTIONS)).stream()
                        .map(ArchitectureTest::topLevel)
                        .filter(name -> !name.endsWith("package-info"))
                        .distinct())
                .as("classes of the library, those that a run reaches")
                .hasSizeGreaterThan(100)
                .isSubsetOf(reached);
    }

    private static String topLevel(JavaClass of) {
        return of.getName().replaceAll("\\$.*", "");
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

    @Test
    void shouldSayInEveryPackageWhatItIsForAndThatItIsNullMarked() {
        assertThat(written().map(JavaClass::getPackage).distinct().filter(each -> !isNullMarked(each)))
                .as("packages without a package-info that is @NullMarked")
                .isEmpty();
    }

    /** The generated records' package says that it is not. */
    private static boolean isNullMarked(JavaPackage each) {
        return each.tryGetPackageInfo()
                .filter(info -> info.isAnnotatedWith(NullMarked.class) || info.isAnnotatedWith(NullUnmarked.class))
                .isPresent();
    }

    @Test
    void shouldNameEveryExceptionAnException() {
        classes()
                .that()
                .areAssignableTo(Throwable.class)
                .should()
                .haveSimpleNameEndingWith("Exception")
                .check(OURS);
        classes()
                .that()
                .haveSimpleNameEndingWith("Exception")
                .should()
                .beAssignableTo(Throwable.class)
                .check(OURS);
    }

    /** What people wrote: without what Avro and protobuf generate. */
    private static Stream<JavaClass> written() {
        return OURS.stream()
                .filter(each -> !each.isAnnotatedWith(AvroGenerated.class))
                .filter(each -> !each.getPackageName().equals("dev.millrace.policy.onnx.proto"));
    }
}
