import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import software.amazon.event.ruler.Machine;

/**
 * Asks AWS's event-ruler about events and patterns: `java -cp … Ruler.java FILE …`.
 *
 * <p>A line of a file is an event, {"n": 1, "event": {…}}, or what somebody says of one: {"n": 1, "pattern": …, "takes": true, "who": "…"}. Each that
 * event-ruler contradicts is a line of the output; the last line counts.
 */
public class Ruler {
    private static final ObjectMapper JSON = new ObjectMapper();
    private final Map<Long, String> events = new HashMap<>();
    private final Map<String, Machine> machines = new HashMap<>();
    /** Claims, and of those the ones that event-ruler takes, by pattern. */
    private final Map<String, long[]> counts = new HashMap<>();
    private long different = 0;

    public static void main(String[] files) throws Exception {
        Ruler ruler = new Ruler();
        for (String file : files) {
            try (BufferedReader lines = Files.newBufferedReader(Path.of(file), StandardCharsets.UTF_8)) {
                String line = lines.readLine();
                while (line != null) {
                    String next = lines.readLine();
                    // The local cloud may have been ended while it wrote the last line.
                    if (next != null || line.endsWith("}")) {
                        ruler.read(JSON.readTree(line));
                    }
                    line = next;
                }
            }
        }
        ruler.tell();
    }

    private void read(JsonNode line) throws Exception {
        long n = line.get("n").asLong();
        if (line.has("event")) {
            events.put(n, line.get("event").toString());
            return;
        }
        JsonNode given = line.get("pattern");
        String pattern = given.isTextual() ? given.asText() : given.toString();
        boolean takes = machine(pattern).rulesForJSONEvent(events.get(n)).contains("rule");
        long[] count = counts.computeIfAbsent(pattern, any -> new long[2]);
        count[0]++;
        count[1] += takes ? 1 : 0;
        if (takes != line.get("takes").asBoolean()) {
            different++;
            String who = line.has("who") ? line.get("who").asText() : "the local cloud";
            System.out.println("different: " + who + " says " + line.get("takes") + ", event-ruler " + takes + ": " + pattern + " of " + events.get(n));
        }
    }

    private Machine machine(String pattern) throws Exception {
        Machine known = machines.get(pattern);
        if (known == null) {
            known = Machine.builder().build();
            known.addRule("rule", pattern);
            machines.put(pattern, known);
        }
        return known;
    }

    private void tell() {
        counts.forEach((pattern, count) -> System.out.println("asked " + count[0] + ", taken " + count[1] + ": " + pattern));
        System.out.println(JSON.createObjectNode().put("events", events.size()).put("patterns", counts.size()).put("different", different));
    }
}
