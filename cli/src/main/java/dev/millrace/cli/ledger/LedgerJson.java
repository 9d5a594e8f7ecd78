package dev.millrace.cli.ledger;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.audit.ledger.Account;
import dev.millrace.audit.ledger.Balance;
import dev.millrace.audit.ledger.RolloutOrigin;
import dev.millrace.audit.ledger.Tally;
import dev.millrace.schemas.run.RunIdentity;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/** The ledger as JSON; the names are a contract. */
final class LedgerJson {
    private LedgerJson() {}

    static ObjectNode of(RunIdentity run, Account account, VersionRange versions) {
        Balance balance = account.balance();
        SortedMap<RolloutOrigin, Tally> chosen = versions.of(balance);
        ObjectNode json = new ObjectMapper().createObjectNode();
        json.put("run_id", run.runId()).put("epoch", run.epoch()).put("policy_id", run.policyId());
        json.put("adds_up", balance.addsUp()).put("complete", balance.gaps().isEmpty());
        put(json.putObject("all"), chosen.values().stream().reduce(Tally.NONE, Tally::plus));
        var epochs = json.putArray("epochs");
        epochs(chosen).forEach((epoch, tally) -> put(epochs.addObject().put("epoch", epoch), tally));
        var rows = json.putArray("versions");
        chosen.forEach((origin, tally) -> {
            ObjectNode row = rows.addObject();
            if (origin.equals(RolloutOrigin.NOT_OURS)) {
                row.putNull("epoch").putNull("version");
            } else {
                row.put("epoch", origin.epoch()).put("version", origin.version());
            }
            put(row, tally);
        });
        json.put("redriven", balance.redriven());
        reasons(json.putObject("copies"), balance.copies());
        reasons(json.putObject("strays"), balance.strays());
        reasons(json.putObject("other_dead_letters"), balance.otherDeadLetters());
        var oldest = json.putArray("oldest_waiting");
        balance.oldestWaiting()
                .forEach(waiting -> oldest.addObject()
                        .put("waits_for", waiting.stage())
                        .put("rollout_id", waiting.rolloutId())
                        .put("since_ms", waiting.sinceMs()));
        balance.gaps().forEach(json.putArray("gaps")::add);
        json.put("contradiction_count", balance.contradictionCount());
        balance.contradictions().forEach(json.putArray("contradictions")::add);
        return json;
    }

    /** Of the run's own epochs, each in all. */
    private static SortedMap<Integer, Tally> epochs(SortedMap<RolloutOrigin, Tally> chosen) {
        SortedMap<Integer, Tally> epochs = new TreeMap<>();
        chosen.forEach((origin, tally) -> {
            if (!origin.equals(RolloutOrigin.NOT_OURS)) {
                epochs.merge(origin.epoch(), tally, Tally::plus);
            }
        });
        return epochs;
    }

    private static void put(ObjectNode json, Tally tally) {
        json.put("generated", tally.generated()).put("trained", tally.trained());
        reasons(json.putObject("masked"), tally.masked());
        reasons(json.putObject("dropped"), tally.dropped());
        reasons(json.putObject("dead_lettered"), tally.deadLettered());
        json.putObject("in_flight")
                .put("waiting_for_score", tally.waitingForScore())
                .put("waiting_for_batch", tally.waitingForBatch())
                .put("waiting_for_step", tally.waitingForStep());
        json.put("untold", tally.untold()).put("superseded", tally.superseded());
    }

    private static void reasons(ObjectNode json, Map<String, Long> counts) {
        counts.forEach(json::put);
    }
}
