import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.json.JsonConverter;

/**
 * What Apache's JsonConverter says of bytes: a line of hexadecimal digits each, in; out: a minus sign for what it
 * refuses, else a plus sign and the value, as jackson_answers.json has it.
 * javac -cp "$JARS/*" JacksonAnswers.java, then java -cp "$JARS/*:." JacksonAnswers, with the jars of Kafka Connect 4.3.1.
 */
public class JacksonAnswers {
    public static void main(String[] arguments) throws Exception {
        JsonConverter converter = new JsonConverter();
        converter.configure(Map.of("schemas.enable", "false"), false);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                System.out.println("+" + shown(converter.toConnectData("t", HexFormat.of().parseHex(line)).value()));
            } catch (Exception refused) {
                System.out.println("-");
            }
        }
    }

    static String shown(Object value) {
        StringBuilder text = new StringBuilder();
        if (value instanceof Map<?, ?> map) {
            map.forEach((name, member) -> text.append(shown(name)).append(":").append(shown(member)).append(","));
            return "{" + text + "}";
        }
        if (value instanceof List<?> list) {
            list.forEach(item -> text.append(shown(item)).append(","));
            return "[" + text + "]";
        }
        if (value instanceof String string) {
            string.chars().forEach(unit -> text.append(String.format("%04x", unit)));
            return "s" + text;
        }
        if (value instanceof Double number) {
            return String.format("d%016x", Double.doubleToLongBits(number));
        }
        return value == null ? "n" : value instanceof Long ? "l" + value : value.toString();
    }
}
