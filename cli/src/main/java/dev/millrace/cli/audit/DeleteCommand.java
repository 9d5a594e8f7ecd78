package dev.millrace.cli.audit;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.cli.ScreenCommand;
import dev.millrace.log.run.ClusterRuns;
import dev.millrace.log.run.ClusterRuns.ClusterRun;
import dev.millrace.log.run.ClusterRuns.Holdings;
import dev.millrace.log.run.RoleRights;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.schemas.run.RunTopics;
import java.util.Collection;
import java.util.List;
import java.util.OptionalLong;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code millrace delete}: deletes a run's topics, groups and other data on a cluster. */
@Command(
        name = "delete",
        description = "Deletes a run from a Kafka cluster: its topics, consumer groups, settings of groups and schema "
                + "subjects. Without --yes it prints them and deletes nothing. Refused while a role is alive. Also"
                + " deletes the remains of a run whose topics were deleted by hand. Lists what remains: Kafka"
                + " cannot delete transactional ids.",
        footer = {
            "",
            "millrace delete --bootstrap-servers kafka:9092 --run my-run",
            "millrace delete --bootstrap-servers kafka:9092 --run my-run --yes",
            "",
            "Exit codes: 0 printed or deleted; 5 nothing of the run found; 1 a failure; 2 a mistake in the command line."
        })
public final class DeleteCommand extends ScreenCommand {
    @Mixin
    private RunOptions run;

    @Option(names = "--yes", description = "Delete what is printed without it.")
    private boolean yes;

    @Override
    public Integer call() {
        MillraceConfig whereabouts = run.whereabouts();
        if (whereabouts.run().embedded()) {
            throw new ConfigException("the run in " + run.folder()
                    + " is entirely in its folder, broker included; remove the folder instead");
        }
        RunTopics topics = whereabouts.run().topics();
        try (ClusterRuns cluster = RunOptions.cluster(whereabouts)) {
            ClusterRun found = found(cluster, whereabouts);
            out().println(title(found));
            if (yes) {
                run.require(RoleRights.DELETE);
                Holdings deleted = cluster.delete(topics);
                tell(deleted, "deleted ");
                printRemains(found, cluster.at(topics).holdings(), cluster.transactionalIdsKeptMs());
            } else {
                tell(found.holdings(), "");
                printRemains(found, stays(found.holdings()), cluster.transactionalIdsKeptMs());
                paragraph(
                        found.signs().isEmpty()
                                ? "Nothing was deleted; --yes deletes it."
                                : "Nothing was deleted. --yes is refused while the run is alive: "
                                        + String.join("; ", found.signs()) + ".");
            }
            return 0;
        }
    }

    /**
     * The run that the options name.
     *
     * @throws NotFoundException if there is nothing to delete
     */
    static ClusterRun found(ClusterRuns cluster, MillraceConfig whereabouts) {
        RunTopics topics = whereabouts.run().topics();
        ClusterRun found = cluster.at(topics);
        if (found.holdings().isEmpty()) {
            throw new NotFoundException("no topic, group or subject of a run under the topic prefix '" + topics.prefix()
                    + "' that this client may see; 'millrace runs' lists the runs of a cluster");
        }
        requireIts(found, whereabouts.run().id());
        return found;
    }

    static void requireIts(ClusterRun found, String id) {
        found.claim()
                .map(claim -> claim.run().runId())
                .filter(owner -> !id.isEmpty() && !owner.equals(id))
                .ifPresent(owner -> {
                    throw new RefusedRequestException(
                            "the topics under '" + found.topics().prefix() + "' belong to run " + owner
                                    + ", not to run " + id + "; give --run " + owner + " with --topic-prefix "
                                    + found.topics().prefix());
                });
    }

    private static String title(ClusterRun found) {
        return found.claim()
                        .map(claim -> "run " + claim.run().runId())
                        .orElse("remains of a run without a readable claim")
                + ", topics " + found.topics().prefix() + "*";
    }

    private static Holdings stays(Holdings before) {
        return new Holdings(
                new TreeSet<>(), new TreeSet<>(), before.transactionalIds(), new TreeSet<>(), before.others());
    }

    private void tell(Holdings holdings, String done) {
        list(done + holdings.topics().size() + " topics", holdings.topics());
        list(done + holdings.groups().size() + " consumer groups", holdings.groups());
        list(done + holdings.subjects().size() + " schema subjects", holdings.subjects());
    }

    private void printRemains(ClusterRun run, Holdings left, OptionalLong keptMs) {
        for (Collection<String> gone : List.of(left.topics(), left.groups(), left.subjects())) {
            list("still there: " + gone.size() + ", recreated meanwhile", gone);
        }
        list(
                "stays: " + left.transactionalIds().size() + " transactional ids, each until "
                        + (keptMs.isPresent()
                                ? TimeUnit.MILLISECONDS.toDays(keptMs.getAsLong()) + " days"
                                : "some time")
                        + " after its last use (transactional.id.expiration.ms of the brokers)",
                left.transactionalIds());
        list("stays: " + left.others().size() + " names under the prefix that no role creates", left.others());
        stores(run).forEach(store -> list("stays: weights in", List.of(store)));
        paragraph("Also stay: ACLs and quotas, folders of roles, archives, and the ids of schemas.");
    }

    /** Where the run keeps versions or optimizer state outside the log. */
    private static List<String> stores(ClusterRun run) {
        ObjectNode recorded = run.claim()
                .flatMap(claim -> claim.configuration())
                .map(text -> ConfigTree.parse(text, "the run's recorded configuration"))
                .orElseGet(ConfigTree::empty);
        return List.of("store", "optimizer_store").stream()
                .map(key -> recorded.path("weights").path(key).asText(""))
                .filter(store -> store.contains("://"))
                .distinct()
                .toList();
    }

    private void list(String heading, Collection<String> names) {
        if (!names.isEmpty()) {
            paragraph(heading);
            names.forEach(name -> out().println("  " + name));
        }
    }
}
