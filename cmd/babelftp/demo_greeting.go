//go:build !nodemo

package main

import "golang.org/x/text/language"

// demoGreeting is the greeting of the demo in each language that is built in. The second tenant has three, to show
// what readers of others get.
func demoGreeting() map[language.Tag]string {
	texts := map[language.Tag]string{}
	for tag, text := range map[string]string{
		"ar":      "مرحبًا بك في العرض التجريبي لخادم babelftp.",
		"az":      "babelftp demosuna xoş gəlmisiniz.",
		"bg":      "Добре дошли в демонстрацията на babelftp.",
		"bn":      "babelftp ডেমোতে স্বাগতম।",
		"ca":      "Us donem la benvinguda a la demostració de babelftp.",
		"cs":      "Vítejte v ukázce serveru babelftp.",
		"da":      "Velkommen til babelftp-demoen.",
		"de":      "Willkommen bei der babelftp-Demo.",
		"el":      "Καλώς ήρθατε στην επίδειξη του babelftp.",
		"en":      "Welcome to the babelftp demo.",
		"es":      "Le damos la bienvenida a la demostración de babelftp.",
		"et":      "Tere tulemast babelftp demosse.",
		"fa":      "به نسخهٔ نمایشی babelftp خوش آمدید.",
		"fi":      "Tervetuloa babelftp-demoon.",
		"fil":     "Maligayang pagdating sa demo ng babelftp.",
		"fr":      "Bienvenue dans la démo de babelftp.",
		"he":      "ברוכים הבאים להדגמה של babelftp.",
		"hi":      "babelftp डेमो में आपका स्वागत है।",
		"hr":      "Dobro došli na demonstracijski poslužitelj babelftp.",
		"hu":      "Üdvözöljük a babelftp bemutatójában.",
		"hy":      "Բարի գալուստ babelftp-ի ցուցադրական սերվեր։",
		"id":      "Selamat datang di demo babelftp.",
		"it":      "Benvenuti nella demo di babelftp.",
		"ja":      "babelftpのデモへようこそ。",
		"ka":      "კეთილი იყოს თქვენი მობრძანება babelftp-ის სადემონსტრაციო სერვერზე.",
		"kk":      "babelftp демо-серверіне қош келдіңіз.",
		"ko":      "babelftp 데모에 오신 것을 환영합니다.",
		"lt":      "Sveiki atvykę į babelftp demonstracinį serverį.",
		"lv":      "Laipni lūdzam babelftp demonstrācijas serverī.",
		"mr":      "babelftp डेमोमध्ये तुमचे स्वागत आहे.",
		"ms":      "Selamat datang ke demo babelftp.",
		"nb":      "Velkommen til babelftp-demoen.",
		"nl":      "Welkom bij de demo van babelftp.",
		"pl":      "Witamy na serwerze demonstracyjnym babelftp.",
		"pt-BR":   "Boas-vindas à demonstração do babelftp.",
		"pt-PT":   "Damos-lhe as boas-vindas à demonstração do babelftp.",
		"ro":      "Bun venit la demonstrația babelftp.",
		"ru":      "Добро пожаловать на демонстрационный сервер babelftp.",
		"sk":      "Vitajte v ukážke servera babelftp.",
		"sl":      "Dobrodošli v predstavitvi strežnika babelftp.",
		"sr":      "Добро дошли на демонстрациони сервер babelftp.",
		"sv":      "Välkommen till babelftps demoserver.",
		"sw":      "Karibu kwenye onyesho la babelftp.",
		"ta":      "babelftp டெமோவுக்கு வரவேற்கிறோம்.",
		"te":      "babelftp డెమోకు స్వాగతం.",
		"th":      "ยินดีต้อนรับสู่เซิร์ฟเวอร์สาธิต babelftp",
		"tr":      "babelftp demosuna hoş geldiniz.",
		"uk":      "Ласкаво просимо на демонстраційний сервер babelftp.",
		"ur":      "babelftp کے ڈیمو میں خوش آمدید۔",
		"vi":      "Chào mừng bạn đến với bản demo của babelftp.",
		"zh-Hans": "欢迎使用 babelftp 演示服务器。",
		"zh-Hant": "歡迎使用 babelftp 示範伺服器。",
	} {
		texts[language.MustParse(tag)] = text
	}
	return texts
}
