package samples

var sentences = []string{
	"The budget decides which passages reach the model, and the ledger says why the others did not.",
	"A block of sixteen tokens is freed as soon as nobody refers to it any more.",
	"It's the reader's choice: they'd rather wait, we've measured, I'm sure you'll agree.",
	"HTTPServer parses maxTokens=4096 and XMLHttpRequest2 ignores snake_case_names.",
	"색인은 문서를 작은 조각으로 나누고 각 조각에 벡터를 하나씩 붙입니다.",
	"데이터베이스가 다시 시작되어도 이미 처리한 문서는 그대로 남아 있어야 합니다.",
	"첫 번째 토큰이 나오기까지 걸린 시간을 기록하지 않으면 느린 이유를 알 수 없어요!",
	"検索結果は三つの文章に絞られ、残りは理由とともに記録されます。",
	"サーバーを再起動すると、キャッシュは空のままカタカナで表示された。",
	"文档被切成小段,每一段都有自己的向量和标题路径。",
	"這個系統在同一個行程裡完成預填與解碼,不需要外部服務。",
	"Die Größe des Schlüsselspeichers hängt von der Zahl der Schichten ab; Straßenübergänge nicht.",
	"Le modèle répond à la question dès que l'œuvre citée a été retrouvée, naïvement ou non.",
	"¿Cuántos párrafos caben en la ventana? Mañana lo sabrá el niño pequeño.",
	"A memória é reservada no início; não há exceções nem promessas vãs.",
	"Zażółć gęślą jaźń, a potem sprawdź źródło odpowiedzi.",
	"Příliš žluťoučký kůň úpěl ďábelské ódy nad účtem tokenů.",
	"Dokumanın içindeki ığdır, şişe ve İstanbul sözcükleri doğru bölünmeli.",
	"Sorgu yanıtlanırken önbellek boşaltılmaz, çünkü başka bir istek onu kullanıyor.",
	"Поисковый сервер нашёл три отрывка и объяснил, почему остальные отброшены.",
	"Відповідь з'являється швидше, якщо початок запиту вже є в пам'яті.",
	"Ο διακομιστής απαντά αμέσως, όταν το ευρετήριο είναι έτοιμο.",
	"השרת מחזיר שלוש פסקאות ומסביר מדוע האחרות נשמטו.",
	"يعيد الخادم ثلاث فقرات ويشرح سبب حذف الباقي، ثُمَّ يُسَجِّلُ الوقت.",
	"سرور سه بند را برمی\u200cگرداند و دلیل کنار گذاشتن بقیه را می\u200cگوید.",
	"सर्वर तीन अनुच्छेद लौटाता है और बाकी को छोड़ने का कारण बताता है।",
	"সার্ভার তিনটি অনুচ্ছেদ ফেরত দেয় এবং কারণ জানায়।",
	"சேவையகம் மூன்று பத்திகளைத் தருகிறது, மற்றவை ஏன் விடப்பட்டன என்று சொல்கிறது.",
	"సర్వర్ మూడు పేరాలను తిరిగి ఇస్తుంది.",
	"เซิร์ฟเวอร์ส่งคืนสามย่อหน้าและบอกเหตุผลที่ตัดส่วนที่เหลือออก",
	"Máy chủ trả về ba đoạn văn và giải thích vì sao bỏ những đoạn khác.",
	"Server mengembalikan tiga paragraf dan menjelaskan alasan sisanya dibuang.",
	"სერვერი აბრუნებს სამ აბზაცს და ხსნის დანარჩენის მიზეზს.",
	"Սերվերը վերադարձնում է երեք պարբերություն։",
	"အဖြေကို စာပိုဒ်သုံးပိုဒ်မှ ရှာတွေ့သည်။",
	"ម៉ាស៊ីនបម្រើត្រឡប់បីកថាខណ្ឌ។",
	"አገልጋዩ ሦስት አንቀጾችን ይመልሳል።",
	"Palvelin palauttaa kolme kappaletta ja kertoo syyn hylättyihin.",
	"A kiszolgáló három bekezdést ad vissza, árvíztűrő tükörfúrógéppel.",
	"Serwer Ǆungla ﬁnds ﬂuﬀy ligatures, ½ cups, ① circled and ｆｕｌｌｗｉｄｔｈ ｶﾞｷﾞ text ㎏ ㍿.",
}

var separators = []string{
	" ", "  ", "\t", "\n", "\r\n", "\n\n", "\u00a0", "\u3000", "\u200b", "\u200d", "\u2028", "\u2009", "\ufeff",
	"-", "_", "/", ".", ", ", "…", "—", "、", "", "\u0085", "\v", "\u1680", "\u202f",
}

var marks = []string{
	"!", "?", "...", "'", "\"", "“", "”", "`", "```", "$", "€", "#", "##", "@", "%", "^", "&", "*", "(", ")", "[", "]", "{",
	"}", "<", ">", "|", "\\", "~", "+", "=", "·", "¿", "«", "»", "₩", "→", "■", "▁", "Ġ", "\u0301", "\u0000", "\u0007", "\u00ad",
}

type runeRange struct{ from, to rune }

var ranges = []runeRange{
	{'a', 'z'},
	{'A', 'Z'},
	{0x20, 0x7e},
	{0xc0, 0xff},
	{0x100, 0x17f},
	{0x250, 0x2ad},
	{0x300, 0x36f},
	{0x391, 0x3a1},
	{0x400, 0x45f},
	{0x5d0, 0x5ea},
	{0x621, 0x64a},
	{0x905, 0x939},
	{0xe01, 0xe3a},
	{0x10d0, 0x10f0},
	{0x1100, 0x1112},
	{0x1161, 0x1175},
	{0x1e00, 0x1eff},
	{0x2000, 0x200f},
	{0x2010, 0x2027},
	{0x2070, 0x2071},
	{0x20a0, 0x20b9},
	{0x2100, 0x214f},
	{0x2150, 0x2188},
	{0x2190, 0x21ff},
	{0x2200, 0x22ff},
	{0x2460, 0x24ff},
	{0x2500, 0x257f},
	{0x3041, 0x3096},
	{0x30a1, 0x30fa},
	{0x3131, 0x318e},
	{0x3200, 0x321e},
	{0x3300, 0x33ff},
	{0x4e00, 0x9fa5},
	{0xac00, 0xd7a3},
	{0xac00, 0xd7a3},
	{0xf900, 0xfa2d},
	{0xfb00, 0xfb06},
	{0xff01, 0xffbe},
	{0x1d400, 0x1d454},
	{0x1f300, 0x1f5ff},
	{0x20000, 0x2a6d6},
	{0x1, 0x1f},
	{0x80, 0xbf},
	{0xe000, 0xe010},
}

var snippets = []string{
	"func main() { fmt.Println(\"hi\") }", "for i := 0; i < len(xs); i++ {", "if err != nil {", "return nil, fmt.Errorf(\"read %s: %w\", path, err)",
	"SELECT id, embedding <=> $1 AS d FROM chunks ORDER BY d LIMIT 20", "x = {k: v**2 for k, v in d.items() if k != 'a'}",
	"#include <stdio.h>", "<div class=\"a b\">&nbsp;</div>", "| a | b |", "|---|---|", "- [ ] item", "1. first", "```go", "// 주석 한 줄",
	"https://example.org/a/b?c=d&e=%20f#g", "user@example.org", "C:\\dir\\file.txt", "0x1F 1e-5 3.14f", "ERR-4402", "don't", "DON'T", "we'Ll",
}

var emoji = []string{
	"😀", "👍🏽", "👩‍🔧", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇰🇷", "🇺🇸", "❤️", "☕", "✅", "1️⃣", "🦦", "🪁", "©️", "™", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🤷🏻‍♀️", "♥", "☎︎",
}

var spellings = []string{
	"<|im_start|>", "<|im_end|>", "<|endoftext|>", "<s>", "</s>", "<pad>", "<unk> ", "<mask>", "<bos>", "<eos>", "<start_of_turn>",
	"<end_of_turn>", "<|eot_id|>", "<|begin_of_text|>", "[CLS]", "[SEP]", "[UNK]", "[PAD]", "[MASK]", "<0x0A>", "<|im_start|",
	"im_end|>", "<|IM_END|>", "<file_sep>", "<think>", "</tool_call>", "<unused7>",
}
